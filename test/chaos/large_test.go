//go:build linux

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// large makes the value that belongs to an id: so long that it is kept beside the log.
func large(id string) []byte {
	line := []byte(id + "\n")
	size := 70<<10 + int(crc32.ChecksumIEEE(line)%(200<<10))
	return bytes.Repeat(line, size/len(line))
}

// useLarge reads or puts a record with a large value.
func (p *party) useLarge(ctx context.Context) {
	p.think(ctx, 400*time.Millisecond)
	c := &recordCall{key: fmt.Sprint("large/", p.random.IntN(larges))}
	caller := p.caller()
	c.called = p.load.clock()
	if p.random.IntN(2) == 0 {
		seen, err := p.load.readLarge(caller, c.key)
		c.seen = seen
		p.note(c, p.ended("read large", err))
		return
	}
	c.write = p.newID()
	record, err := caller.PutRecord(context.Background(), v1.PutRequest{Path: c.key, Value: large(c.write)})
	c.revision = record.Mod
	p.note(c, p.ended("put large", err))
}

// readLarge returns the id that a large value belongs to; empty if there is none.
func (l *load) readLarge(caller *v1.Caller, key string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	body, err := caller.OpenRecord(ctx, key, 0)
	if err != nil {
		return "", err
	}
	defer body.Close()
	value, err := io.ReadAll(body)
	if err != nil {
		return "", &leasehold.Error{Code: leasehold.Unavailable, Message: err.Error()} // it was cut off
	}
	id, _, _ := bytes.Cut(value, []byte("\n"))
	if !bytes.Equal(value, large(string(id))) {
		l.report.violated(damaged, "%s has %d bytes that nobody wrote", key, len(value))
	}
	return string(id), nil
}

func (l *load) readLargeFinally(p *party, server int, key string) {
	l.insist(fmt.Sprintf("server %d reads %s", server+1, key), func() error {
		c := &recordCall{key: key, final: true, called: l.clock()}
		seen, err := l.readLarge(p.callers[server], key)
		if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
			return err
		}
		c.seen, c.returned = seen, l.clock()
		l.history.addRecord(c)
		return nil
	})
}
