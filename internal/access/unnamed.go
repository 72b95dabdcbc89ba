package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/limit"
)

// Large values take room on the disk before anything names them, and those whose command was refused take it in vain.
// So they count, from before their bytes are read: against the quota of who puts them, and all together.
const (
	maxUnnamed   = 4 << 30        // bytes of all that have no name yet
	unnamedAlone = maxUnnamed / 2 // of one principal, if there is no other
	dropTime     = 10 * time.Second
	unnamedStep  = 1 << 20 // bytes that are counted at a time where nobody says how many come
)

// An upload is a large value on its way to a name.
type upload struct {
	who   string
	bytes int64 // that are counted
	fate  fate
}

// A fate is what became of an upload so far.
type fate uint8

const (
	unneeded fate = iota // no command names it
	unsure               // one may yet
	isNamed
)

// unnamed counts uploads.
type unnamed struct {
	mu   sync.Mutex // guards what follows
	all  limit.Budget
	by   map[string]int64 // by principal; empty: nobody is asked who it is
	puts map[leasehold.Digest][]*upload
}

// put keeps a value. most is how many bytes the asker may have without a name; 0: as many as everybody.
func (u *unnamed) put(ctx context.Context, in engine.Values, most int64, r io.Reader) (leasehold.Large, error) {
	one := &upload{who: whoOf(ctx)}
	counted := &counting{r: r, count: func(n int64) error { return u.count(one, n, most) }}
	if sized, ok := r.(engine.Sized); ok {
		if err := counted.reach(sized.Size()); err != nil {
			return leasehold.Large{}, err
		}
	}
	large, err := in.PutValue(ctx, counted)
	if err == nil || counted.refused != nil {
		err = counted.refused
	}
	if err != nil {
		u.forget(one)
		return leasehold.Large{}, err
	}
	u.mu.Lock()
	u.puts[large.SHA256] = append(u.puts[large.SHA256], one)
	u.mu.Unlock()
	context.AfterFunc(ctx, func() { u.over(in, one, large) })
	return large, nil
}

// count counts more bytes of an upload, or returns why there are too many.
func (u *unnamed) count(one *upload, more, most int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by, u.puts = map[string]int64{}, map[leasehold.Digest][]*upload{}
		u.all.Most, u.all.Alone = maxUnnamed, unnamedAlone
	}
	switch own := u.by[one.who] + more; {
	case most > 0 && own > most:
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf("%s may have %d bytes, and would have "+
			"%d that are on their way or were refused: wait until they are gone, or ask an admin to raise the quota "+
			"with leasehold access quota", one.who, most, own)}
	case !u.all.Take(one.who, int(more)):
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf("large values that nothing names have "+
			"as many bytes as there can be, %d, or as one client may have, %d if there is no other: try again in a "+
			"moment", int64(maxUnnamed), int64(unnamedAlone))}
	}
	one.bytes += more
	u.by[one.who] += more
	return nil
}

// told notes what became of a command that names values.
func (u *unnamed) told(ctx context.Context, list []leasehold.Large, err error) {
	if len(list) == 0 {
		return
	}
	who := whoOf(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, large := range list {
		for _, one := range u.puts[large.SHA256] {
			switch {
			case one.who != who:
			case err == nil:
				one.fate = isNamed
			case errors.Is(err, leasehold.ErrUnavailable), errors.Is(err, leasehold.ErrUndecided):
				one.fate = max(one.fate, unsure)
			}
		}
	}
}

// over ends an upload with its request. What nothing needs goes; what cannot go at once counts until it does.
func (u *unnamed) over(in engine.Values, one *upload, large leasehold.Large) {
	u.mu.Lock()
	list := slices.DeleteFunc(u.puts[large.SHA256], func(other *upload) bool { return other == one })
	if u.puts[large.SHA256] = list; len(list) == 0 {
		delete(u.puts, large.SHA256)
	}
	became := one.fate
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), dropTime)
	defer cancel()
	if gone := in.LetValue(ctx, large, became == unneeded); gone || became == isNamed {
		u.forget(one)
		return
	}
	time.AfterFunc(2*engine.ValueIdle, func() { u.forget(one) })
}

// forget counts an upload no more.
func (u *unnamed) forget(one *upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all.Give(one.who, int(one.bytes))
	if u.by[one.who] -= one.bytes; u.by[one.who] == 0 {
		delete(u.by, one.who)
	}
	one.bytes = 0
}

// counting counts what is read, before it is.
type counting struct {
	r           io.Reader
	count       func(int64) error
	read, known int64
	refused     error
}

// reach counts as many bytes as there will be.
func (c *counting) reach(n int64) error {
	if n <= c.known {
		return nil
	}
	if err := c.count(n - c.known); err != nil {
		c.refused = err
		return err
	}
	c.known = n
	return nil
}

// Read reads what is counted, and at most one byte more: it may be the end.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p[:min(int64(len(p)), c.known-c.read+1)])
	if c.read += int64(n); c.read > c.known {
		if err := c.reach(c.known + unnamedStep); err != nil {
			return 0, err
		}
	}
	return n, err
}

// mostUnnamed is how many bytes the asker may have without a name; 0: as many as everybody.
func (g *Guard) mostUnnamed(ctx context.Context) int64 {
	p := g.feed.Policy()
	asker := engine.AskerOf(ctx)
	if p == nil || asker == nil {
		return 0
	}
	if q := p.QuotaOfPrincipal(asker.Principal); q != nil {
		return q.Bytes
	}
	return 0
}

func whoOf(ctx context.Context) string {
	if asker := engine.AskerOf(ctx); asker != nil {
		return asker.Principal
	}
	return ""
}
