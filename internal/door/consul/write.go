package consul

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

const (
	maxValue  = 512 << 10                                   // bytes of a value, as in Consul
	maxPacked = int64(len(flagged) + binary.MaxVarintLen64) // bytes that its flags take
	inLog     = leasehold.MaxValue                          // bytes of a value that is kept in the log
)

// A content is a value as it is kept: in the log, or beside it.
type content struct {
	value string
	large *leasehold.Large
}

// contentOf keeps what does not fit in the log beside it. Nothing names that until a command does.
func (c *call) contentOf(value []byte, flags uint64) (content, error) {
	kept := pack(value, flags)
	if len(kept) <= inLog {
		return content{value: string(kept)}, nil
	}
	values := c.door.backend.Values()
	if values == nil {
		return content{}, tooLarge(int64(len(kept)), inLog)
	}
	large, err := values.PutValue(c.ctx, bytes.NewReader(kept))
	return content{large: &large}, err
}

// A put is what a PUT of a key says.
type put struct {
	key     string
	content content
}

// readPut reads a PUT of a key.
func (c *call) readPut() (p put, err error) {
	if p.key, err = c.oneKey(); err != nil {
		return p, err
	}
	if err := c.conflicting("cas", "acquire", "release"); err != nil {
		return p, err
	}
	flags, err := c.number("flags")
	if err != nil {
		return p, err
	}
	value, err := c.readValue()
	if err != nil {
		return p, err
	}
	p.content, err = c.contentOf(value, flags)
	return p, err
}

// conflicting refuses parameters that exclude each other.
func (c *call) conflicting(names ...string) error {
	found := 0
	for _, name := range names {
		if c.query.Has(name) {
			found++
		}
	}
	if found <= 1 {
		return nil
	}
	told := maps.Clone(c.query)
	told.Del("token") // the journal keeps what is refused
	return badRequest("Conflicting flags: %s\n", told.Encode())
}

// number reads a parameter that is a number; 0 if it is not there.
func (c *call) number(name string) (uint64, error) {
	if !c.query.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseUint(c.query.Get(name), 10, 64)
	if err != nil {
		return 0, unparsable(err)
	}
	return n, nil
}

// readValue reads the body of a PUT.
func (c *call) readValue() ([]byte, error) {
	if c.r.ContentLength == 0 {
		return nil, nil
	}
	if c.r.ContentLength > maxValue {
		return nil, tooLarge(c.r.ContentLength, maxValue)
	}
	value, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxValue))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, tooLarge(0, maxValue)
	case err != nil:
		return nil, badRequest("the body cannot be read, and nothing was written: %v", err)
	}
	return value, nil
}

// putKey writes a key, whoever holds it: locks of Consul are advisory.
func (c *call) putKey() error {
	p, err := c.readPut()
	if err != nil {
		return err
	}
	command := &core.PutRecord{Namespace: c.namespace(), Path: p.key, Value: p.content.value, Large: p.content.large,
		KeepLink: true}
	if !c.query.Has("cas") {
		if _, err := c.once(command); err != nil {
			return err
		}
		return c.send(true)
	}
	seen, err := c.number("cas")
	if err != nil {
		return err
	}
	if command.IfAbsent = seen == 0; seen == 1 {
		return c.no("no key has index 1")
	}
	command.IfRevision = revisionOf(seen)
	if command.IfAbsent {
		command.IfRevision = 0
	}
	_, err = c.once(command)
	if command.IfAbsent && errors.Is(err, leasehold.ErrRefused) {
		return c.no(door.Coded(err).Message) // also if the key has been deleted since
	}
	return c.yesUnlessStale(err, p.key, seen)
}

// once carries out a command that must not be done twice. What did not happen for want of a leader is tried again for
// a moment.
func (c *call) once(command core.Command) (answer core.Answer, err error) {
	var undecided error
	err = c.door.backend.Patiently(c.ctx, func() (err error) {
		if answer, err = c.do(command); errors.Is(err, leasehold.ErrUndecided) {
			undecided = err
			return nil
		}
		return err
	})
	if undecided != nil {
		err = undecided
	}
	return answer, err
}

// yesUnlessStale answers a write that was to be done only if a key was at an index.
func (c *call) yesUnlessStale(err error, key string, seen uint64) error {
	if err == nil {
		return c.send(true)
	}
	if !errors.Is(err, leasehold.ErrRefused) {
		return err
	}
	now, _, failure := c.record(key)
	switch {
	case failure != nil:
		return failure
	case now != nil && indexOf(now.Mod) == seen:
		return err // it was as expected: it is refused for something else
	}
	return c.no(door.Coded(err).Message)
}

// reasonHeader says why an answer is false, which Consul does not.
const reasonHeader = "X-Leasehold-Reason"

// no answers false.
func (c *call) no(reason string) error {
	if readable(reason) {
		c.w.Header().Set(reasonHeader, reason)
	}
	return c.send(false)
}

// deleteKeys deletes a key, or all that begin with a prefix. Locks on them are released at once, as in Consul: no
// lock-delay follows.
func (c *call) deleteKeys() error {
	if err := c.conflicting("recurse", "cas"); err != nil {
		return err
	}
	if c.query.Has("recurse") {
		prefix, err := c.key()
		if err != nil {
			return err
		}
		_, err = c.once(&core.DeleteRecord{Namespace: c.namespace(), Path: prefix, Range: true,
			To: core.PrefixEnd(prefix)})
		if err != nil {
			return err
		}
		return c.send(true)
	}
	key, err := c.oneKey()
	if err != nil {
		return err
	}
	command := &core.DeleteRecord{Namespace: c.namespace(), Path: key}
	if !c.query.Has("cas") {
		if _, err := c.once(command); err != nil {
			return err
		}
		return c.send(true)
	}
	seen, err := c.number("cas")
	if err != nil {
		return err
	}
	if command.IfRevision = revisionOf(seen); command.IfRevision == 0 {
		return c.deleteMissing(key)
	}
	_, err = c.once(command)
	if errors.Is(err, leasehold.ErrRefused) {
		return c.deletedUnlessStale(err, key, seen)
	}
	if err != nil {
		return err
	}
	return c.send(true)
}

// deleteMissing answers a delete of a key at an index that none has: true if there is nothing to delete.
func (c *call) deleteMissing(key string) error {
	now, _, err := c.record(key)
	if err != nil {
		return err
	}
	if now != nil {
		return c.no("the key has another index")
	}
	return c.send(true)
}

// deletedUnlessStale is yesUnlessStale for a delete, which is done if the key is not there.
func (c *call) deletedUnlessStale(err error, key string, seen uint64) error {
	now, _, failure := c.record(key)
	switch {
	case failure != nil:
		return failure
	case now == nil:
		return c.send(true)
	case indexOf(now.Mod) == seen:
		return err
	}
	return c.no(door.Coded(err).Message)
}
