package terraform

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// Reading, writing and deleting states. A write goes under a lock if the client names one, and
// is fenced by it: a client that lost its lock while it worked is refused, although Terraform
// itself would not notice. Serial and lineage guard the rest, as in Terraform's own backends.

// read sends the state, or with versions, version or info what is known of older ones.
func (c *call) read() error {
	versions, badVersions := c.query.Flag("versions")
	info, badInfo := c.query.Flag("info")
	version, badVersion := c.query.Number("version", 0, 1<<63-1)
	switch err := door.First(badVersions, badInfo, badVersion); {
	case err != nil:
		return err
	case versions:
		return c.versions()
	case info:
		return c.info()
	}
	var at leasehold.Version
	var found bool
	err := c.patiently(func() (err error) {
		at, found, err = c.find(leasehold.Revision(version))
		return err
	})
	if err != nil {
		return err
	}
	if !found && c.readsProblems() {
		return c.noState()
	}
	if !found {
		// 404 says the same to Terraform, but it is also what a wrong address would get.
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return c.sendState(at)
}

// find looks up the state as it is, or one of its versions.
func (c *call) find(version leasehold.Revision) (at leasehold.Version, found bool, err error) {
	var failure *leasehold.Error
	err = c.look(func(v core.View) {
		if version == 0 {
			list, _ := v.Versions(c.namespace, c.path, 0, 1)
			if found = len(list) > 0 && list[0].Current; found {
				at = list[0]
			}
			return
		}
		at, failure = v.Version(c.namespace, c.path, version)
		found = true
	})
	if err == nil && failure != nil {
		err = failure
	}
	return at, found, err
}

func (c *call) sendState(at leasehold.Version) error {
	of := content{at.Value, at.Large}
	ctx, ended := c.door.backend.Proven(c.ctx, c.proof)
	defer ended()
	r, err := c.door.bytes(ctx, of)
	if err != nil {
		return err
	}
	defer r.Close()
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.FormatInt(of.size(), 10))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Etag", strconv.Quote(strconv.FormatUint(uint64(at.Revision), 10)))
	if c.r.Method == http.MethodHead {
		return nil
	}
	// The status is sent: if something goes wrong now, the answer ends too early, which a
	// client sees from its length.
	_, _ = io.Copy(pace.Writer(c.w), r)
	return nil
}

func (c *call) write() error {
	if c.query.Has("allow-lineage") {
		return c.permit()
	}
	force, err := c.forced()
	id, badID := c.givenID()
	if err := door.First(err, badID); err != nil {
		return err
	}
	// Before the body is read, which may take longer than what is left of the lock.
	if err := c.renew(id); err != nil {
		return err
	}
	sent, head, err := c.receive()
	if err != nil {
		return err
	}
	defer door.WriteWithin(c.w, pieceTime)
	err = c.patiently(func() error { return c.store(sent, head, id, force) })
	if err != nil {
		return err
	}
	c.send(http.StatusOK, "application/json", struct{}{})
	return nil
}

// forced reports whether the client insists although its state does not follow the one that is
// there.
func (c *call) forced() (bool, error) {
	if c.r.Header.Get(forceHeader) == "true" {
		return true, nil
	}
	return c.query.Flag("force")
}

const forceHeader = "Leasehold-Force"

// givenID returns the lock under which a request is made; empty: it names none.
func (c *call) givenID() (id string, err error) {
	if c.query.Get("ID") != "" {
		id, err = tfstate.ParseLockID(c.query.Get("ID"))
	}
	c.id = id
	return id, err
}

// renew makes the lock of a request last for another TTL, if it has one: Terraform does not
// renew, so a sign of life is all there is. If the lock is gone, the write will say so.
func (c *call) renew(id string) error {
	if id == "" {
		return nil
	}
	return c.patiently(func() error {
		s, err := c.see(id)
		if err != nil || !s.mine || s.holder.TTL == 0 {
			return err
		}
		_, err = c.do(&core.Renew{Namespace: c.namespace, ID: s.holder.ID})
		if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound) {
			return nil
		}
		return err
	})
}

// A present is what a write finds.
type present struct {
	sight
	record *leasehold.Record // nil: there is no state
	head   tfstate.Head      // of it
	same   bool              // it is what is being written
	blob   blobItems         // of a state of the azurerm backend

	permit  *tfstate.Permit // to write another lineage; nil: there is none
	session string          // that the permit ends with
}

// present reads the state and its lock at the same moment.
func (c *call) present(id string, sent *content) (p present, err error) {
	err = c.look(func(v core.View) {
		p.sight = c.seeIn(v, id)
		p.record, _ = v.Record(c.namespace, c.path, 0)
		p.permit, p.session = c.permitIn(v, p.record)
		if c.azure {
			p.blob = c.lookBlob(v)
		}
	})
	if err != nil || p.absent(c.azure) {
		return p, err
	}
	there := content{p.record.Value, p.record.Large}
	if sent != nil {
		p.same = there.same(*sent) && (!c.azure || p.blob.blob.MD5 == c.sum())
	}
	p.head, err = c.headOf(there)
	if errors.Is(err, leasehold.ErrInvalid) {
		return p, &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
			"the record %s is not a state (%v): another program wrote it; roll it back or delete it", c.path,
			err)}
	}
	return p, err
}

// store writes what was sent as the state, if it may be.
func (c *call) store(sent content, head tfstate.Head, id string, force bool) error {
	for range maxLooks {
		p, err := c.present(id, &sent)
		if err != nil && !(force && errors.Is(err, leasehold.ErrRefused)) {
			return err
		}
		done, err := c.judge(p, head, id, force)
		if done || err != nil {
			return err
		}
		changed, err := c.put(p, sent, head)
		if err == nil && !changed && p.permits(head) {
			c.usedUp(p.session)
		}
		if !changed {
			return err
		}
	}
	return engine.Unavailable(c.state + " changes too often: try again")
}

// judge reports whether a write is done already, or returns why it may not be.
func (c *call) judge(p present, head tfstate.Head, id string, force bool) (done bool, err error) {
	switch {
	case p.same && (p.mine || p.wroteIt(id) || p.holder == nil && id == ""):
		return true, nil // by an earlier try, whose answer was lost
	case p.holder != nil && !p.mine:
		return false, c.held(p.sight, c.notUnder(id)+", and it is locked by "+p.holder.Holder)
	// The client believes in a lock that has ended: somebody else may have written since.
	case p.holder == nil && id != "":
		return false, &leasehold.Error{Code: leasehold.Lost, Message: c.notUnder(id) +
			": that lock has ended; keep errored.tfstate, and push it once you have looked at both"}
	case p.absent(c.azure) || force || p.permits(head):
		return false, nil
	case p.head.Lineage != head.Lineage:
		return false, c.otherLineage(p.head.Lineage, head.Lineage)
	case head.Serial < p.head.Serial:
		return false, refused("%s has serial %d, and the state sent has serial %d, which is older: "+
			"somebody else has written since", c.state, p.head.Serial, head.Serial)
	// A holder may write a serial twice: nobody else can have written in between.
	case head.Serial == p.head.Serial && !p.mine:
		return false,
			refused("%s already has serial %d, with other content: somebody else wrote at the same time; lock the "+
				"state while you write, or force it", c.state, p.head.Serial)
	}
	return false, nil
}

// wroteIt reports whether the present state was written under the lock of an ID that has ended
// since.
func (p *present) wroteIt(id string) bool {
	return lockEnded(p.status.Last, id) && p.record.Token == p.status.Last.Token
}

func (c *call) notUnder(id string) string {
	if id == "" {
		return c.state + " was not written: the request names no lock"
	}
	return fmt.Sprintf("%s was not written: it is not locked with %s", c.state, id)
}

func refused(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(format, args...)}
}

// put writes, if all is still as it was read. changed reports that it is not.
func (c *call) put(p present, sent content, head tfstate.Head) (changed bool, err error) {
	if c.azure {
		return c.putBlob(p, sent, head)
	}
	if p.holder != nil {
		command := &core.PutRecord{
			Namespace: c.namespace, Path: c.path, Value: sent.value, Large: sent.large, Keep: c.door.config.Keep,
			Fence: core.Fence{Lease: p.holder.ID, Token: p.holder.Token},
		}
		if command.IfAbsent = p.record == nil; !command.IfAbsent {
			command.IfRevision = p.record.Mod
		}
		command.By, command.Reason = c.whyForced(p, head)
		_, err = c.do(command)
		// Lost: the lease ended, or has another id.
		return errors.Is(err, leasehold.ErrRefused) || errors.Is(err, leasehold.ErrLost), err
	}
	return c.unlocked(p,
		core.Op{Do: core.Put, Path: c.path, Value: sent.value, Large: sent.large, Keep: c.door.config.Keep})
}

// unlocked does something to a state that is not locked, if that is still so and the state is
// as it was read.
func (c *call) unlocked(p present, op core.Op) (changed bool, err error) {
	var mod leasehold.Revision
	if p.record != nil {
		mod = p.record.Mod
	}
	answer, err := c.do(&core.Txn{
		Namespace: c.namespace,
		If: []core.Compare{
			{What: core.LeaseToken, Is: core.Equal, Path: c.path},
			{What: core.RecordMod, Is: core.Equal, Path: c.path, Number: uint64(mod)},
		},
		Then: []core.Op{op},
	})
	if err != nil {
		return false, err
	}
	return !answer.Txn.Succeeded, nil
}

// drop deletes a state. Its versions are kept for a while, and it can be rolled back to one of
// them.
func (c *call) drop() error {
	id, err := c.givenID()
	if err != nil {
		return err
	}
	if err := c.patiently(func() error { return c.dropOnce(id) }); err != nil {
		return err
	}
	c.send(http.StatusOK, "application/json", struct{}{})
	return nil
}

func (c *call) dropOnce(id string) error {
	for range maxLooks {
		p, err := c.present(id, nil)
		if err != nil && !errors.Is(err, leasehold.ErrRefused) {
			return err
		}
		if p.record == nil {
			return nil
		}
		if _, err := c.judge(p, tfstate.Head{}, id, true); err != nil {
			return err
		}
		changed := false
		if p.holder == nil {
			changed, err = c.unlocked(p, core.Op{Do: core.Delete, Path: c.path})
		} else {
			_, err = c.do(&core.DeleteRecord{
				Namespace: c.namespace, Path: c.path, IfRevision: p.record.Mod,
				Fence: core.Fence{Lease: p.holder.ID, Token: p.holder.Token},
			})
			changed = errors.Is(err, leasehold.ErrRefused) || errors.Is(err, leasehold.ErrLost)
		}
		if !changed {
			return err
		}
	}
	return engine.Unavailable(c.state + " changes too often: try again")
}
