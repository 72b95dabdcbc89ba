package azure

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// createContainer makes a container. A second try of the same request finds its own and is well.
func (c *call) createContainer() error {
	metadata, err := c.readMetadata()
	if err != nil {
		return err
	}
	made := azureaccount.NewETag()
	return c.decide(func(tried bool) (bool, error) {
		var was item
		if err := c.read(func(v core.View) { was = c.lookContainer(v) }); err != nil {
			return false, err
		}
		switch {
		case tried && was.found && was.ETag == made:
			was.tags(c.w.Header())
			return true, c.answer(http.StatusCreated)
		case was.found:
			return false, errContainerExists
		case was.Deleting:
			// Its deletion did not get to the end, or is still going on.
			if err := c.purge(was.mod); err != nil {
				return false, errContainerDeleting
			}
			return false, nil
		}
		p := properties{azureblob.Properties{Metadata: metadata}}
		p.Touch()
		p.ETag, p.Created, p.Settled = made, p.Modified, was.lease.token
		_, done, err := c.do([]core.Compare{unchanged(c.at.ContainerPath(), 0)},
			core.Op{Do: core.Put, Path: c.at.ContainerPath(), Value: p.Encode()})
		if err != nil || !done {
			return false, err
		}
		p.tags(c.w.Header())
		return true, c.answer(http.StatusCreated)
	})
}

// readContainer reads a container under the lease that the request names.
func (c *call) readContainer() (i item, err error) {
	guid, err := c.leaseHeader()
	if err != nil {
		return i, err
	}
	if err := c.read(func(v core.View) { i = c.lookContainer(v) }); err != nil {
		return i, err
	}
	if !i.found {
		return i, errContainerNotFound
	}
	return i, i.lease.checkContainer(guid, false)
}

// guardedContainer reads a container that is about to be changed, or deleted.
func (c *call) guardedContainer(g *guard, deletion bool) (was item, err error) {
	if err := c.read(func(v core.View) { was = c.lookContainer(v) }); err != nil {
		return was, err
	}
	if !was.found {
		return was, errContainerNotFound
	}
	return was, door.First(was.lease.checkContainer(g.guid, deletion), g.check(&was, true))
}

func (c *call) getContainer() error {
	i, err := c.readContainer()
	if err != nil {
		return err
	}
	h := c.w.Header()
	i.tags(h)
	i.lease.head(h)
	writeMetadata(h, i.Metadata)
	h["x-ms-has-immutability-policy"], h["x-ms-has-legal-hold"] = []string{"false"}, []string{"false"}
	return c.answer(http.StatusOK)
}

// getContainerACL answers that there is no access without a key or a signature.
func (c *call) getContainerACL() error {
	i, err := c.readContainer()
	if err != nil {
		return err
	}
	i.tags(c.w.Header())
	return c.answerXML(&signedIdentifiers{})
}

func (c *call) setContainer() error {
	metadata, err := c.readMetadata()
	if err != nil {
		return err
	}
	guard, err := c.readGuard()
	if err != nil {
		return err
	}
	return c.decide(func(bool) (bool, error) {
		was, err := c.guardedContainer(&guard, false)
		if err != nil {
			return false, err
		}
		// The end of a container's lease is shown until it is leased again: a write does not
		// settle it.
		p := was.properties
		p.Metadata = metadata
		p.Touch()
		still := []core.Compare{unchanged(c.at.ContainerPath(), was.mod), was.lease.asSeen(c.at.Resource())}
		_, done, err := c.do(still,
			core.Op{Do: core.Put, Path: c.at.ContainerPath(), Value: p.Encode()})
		if err != nil || !done {
			return false, err
		}
		p.tags(c.w.Header())
		return true, c.answer(http.StatusOK)
	})
}

// deleteContainer marks a container as deleted, in one command, and then deletes what is in it.
func (c *call) deleteContainer() error {
	guard, err := c.readGuard()
	if err != nil {
		return err
	}
	var created leasehold.Revision // of the container that is to be deleted, and not of the next one of its name
	return c.decide(func(tried bool) (bool, error) {
		was, err := c.guardedContainer(&guard, true)
		switch {
		case tried && (errors.Is(err, errContainerNotFound) || created != 0 && was.create != created):
			return true, c.answer(http.StatusAccepted) // an earlier try did it
		case err != nil:
			return false, err
		}
		created = was.create
		p := was.properties
		p.Deleting = true
		ops := []core.Op{{Do: core.Put, Path: c.at.ContainerPath(), Value: p.Encode()}}
		if was.lease.alive() {
			ops = append(ops, core.Op{Do: core.ReleaseLease, ID: was.lease.id})
		}
		still := []core.Compare{unchanged(c.at.ContainerPath(), was.mod), was.lease.asSeen(c.at.Resource())}
		_, done, err := c.do(still, ops...)
		if err != nil || !done {
			return false, err
		}
		// For clients it is gone by now. What is left in it, if this fails, goes when the name
		// is used again.
		var marked item
		if err := c.read(func(v core.View) { marked = c.lookContainer(v) }); err == nil && marked.Deleting {
			_ = c.purge(marked.mod)
		}
		return true, c.answer(http.StatusAccepted)
	})
}

// purge deletes a container that was marked, and all that is in it. Nothing else writes there:
// each write compares that the container is as it was. A client that leaves does not stop it.
func (c *call) purge(mod leasehold.Revision) error {
	ours := *c
	ours.ctx = context.WithoutCancel(c.ctx)
	still := unchanged(c.at.ContainerPath(), mod)
	if err := ours.endLeases(still); err != nil {
		return err
	}
	for _, root := range azureblob.Roots {
		if err := ours.purgeAll(c.at.Within(root), still); err != nil {
			return err
		}
	}
	_, _, err := ours.do([]core.Compare{still}, core.Op{Do: core.Delete, Path: c.at.ContainerPath()})
	return err
}

// endLeases ends the leases on all blobs of a container. In Azure, too, they do not protect
// their blobs when the container is deleted.
func (c *call) endLeases(still core.Compare) error {
	prefix := c.at.Within(azureblob.RootBlobs)
	var names []string
	err := c.eachRecord(prefix, func(r *leasehold.Record) { names = append(names, strings.TrimPrefix(r.Path, prefix)) })
	if err != nil {
		return err
	}
	for _, name := range names {
		at := c.at
		at.Blob = name
		// Busy: somebody else clears the same container away.
		err := c.decide(func(bool) (bool, error) { return c.endLease(at, still) })
		if err != nil && !errors.Is(err, errServerBusy) {
			return err
		}
	}
	return nil
}

// endLease ends the lease on a blob, if there is one.
func (c *call) endLease(at azureblob.Place, still core.Compare) (done bool, err error) {
	var l lease
	if err := c.read(func(v core.View) { l = c.lookLease(v, at.Resource(), &properties{}) }); err != nil {
		return false, err
	}
	if !l.alive() {
		return true, nil
	}
	_, done, err = c.do([]core.Compare{still, l.asSeen(at.Resource())}, core.Op{Do: core.ReleaseLease, ID: l.id})
	if ended(err) {
		return false, nil
	}
	return done, err
}

// purgeAll deletes all records under a prefix, a page at a time.
func (c *call) purgeAll(prefix string, still core.Compare) error {
	for {
		var page core.RecordPage
		err := c.read(func(v core.View) {
			page, _ = v.Records(c.door.config.Namespace,
				core.RecordQuery{From: prefix, To: core.PrefixEnd(prefix), KeysOnly: true})
		})
		if err != nil || len(page.Records) == 0 {
			return err
		}
		last := page.Records[len(page.Records)-1].Path
		_, done, err := c.do([]core.Compare{still},
			core.Op{Do: core.Delete, Path: prefix, Range: true, To: last + "\x00"})
		if err != nil || !done {
			return err // not done: somebody else finished it
		}
	}
}

// getAccount answers what kind of account this is.
func (c *call) getAccount() error {
	h := c.w.Header()
	h["x-ms-sku-name"] = []string{"Standard_LRS"}
	h["x-ms-account-kind"] = []string{"StorageV2"}
	h["x-ms-is-hns-enabled"] = []string{"false"}
	return c.answer(http.StatusOK)
}

// getService answers that nothing that can be configured is on.
func (c *call) getService() error {
	return c.answerXML(newServiceProperties())
}
