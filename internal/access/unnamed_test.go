package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// kept is an engine that keeps values, and knows how many bytes it read.
type kept struct {
	read int64
	has  map[leasehold.Large]bool
}

func (k *kept) PutValue(_ context.Context, r io.Reader) (leasehold.Large, error) {
	b, err := io.ReadAll(r)
	k.read += int64(len(b))
	if err != nil {
		return leasehold.Large{}, engine.CutOff(err)
	}
	large := leasehold.Large{SHA256: sha256.Sum256(b), Size: int64(len(b))}
	k.has[large] = true
	return large, nil
}

func (k *kept) LetValue(_ context.Context, large leasehold.Large, unneeded bool) bool {
	if unneeded {
		delete(k.has, large)
	}
	return unneeded
}

func (k *kept) OpenValue(context.Context, leasehold.Large) (io.ReadSeekCloser, error) {
	return nil, nil
}

type body struct {
	io.Reader
	size int64
}

func (b body) Size() int64 { return b.size }

// What is beyond a quota is refused by the length that is declared, before a byte is read, and by what comes where none
// is. What no command has named is deleted with its request; what one may yet name stays, and counts.
func TestUnnamedValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u unnamed
		k := &kept{has: map[leasehold.Large]bool{}}
		const quota = 3 << 20
		put := func(size, declared int) (large leasehold.Large, end func(), err error) {
			ctx, cancel := context.WithCancel(engine.WithAsker(t.Context(), &policy.Asker{Principal: "bob"}))
			large, err = u.put(ctx, k, quota, body{strings.NewReader(strings.Repeat("x", size)), int64(declared)})
			return large, func() { cancel(); synctest.Wait() }, err
		}
		refused := func(size, declared int, most int64) {
			t.Helper()
			k.read = 0
			_, end, err := put(size, declared)
			end()
			if !errors.Is(err, leasehold.ErrLimited) || k.read > most {
				t.Errorf("%d bytes, %d declared: %v, after %d were read", size, declared, err, k.read)
			}
		}
		refused(quota+1, quota+1, 0)
		refused(quota+1, -1, quota)
		asker := engine.WithAsker(t.Context(), &policy.Asker{Principal: "bob"})
		_, end, err := put(quota, quota)
		if err != nil {
			t.Fatalf("exactly the quota is refused: %v", err)
		}
		refused(1, 1, 0)
		end()
		if len(k.has) != 0 {
			t.Error("a value that no command named is still there when its request is over")
		}
		for _, outcome := range []error{nil, leasehold.ErrUndecided} {
			large, end, err := put(1<<20, -1)
			if err != nil {
				t.Fatal(err)
			}
			u.told(asker, []leasehold.Large{large}, leasehold.ErrRefused)
			u.told(asker, []leasehold.Large{large}, outcome)
			end()
			if !k.has[large] {
				t.Errorf("a value whose command is answered %v was deleted", outcome)
			}
			if counted := u.by["bob"] != 0; counted != (outcome != nil) {
				t.Errorf("its command is answered %v: %d bytes count", outcome, u.by["bob"])
			}
		}
	})
}

// A slow is an engine that takes its time to keep values.
type slow struct {
	kept
	begun, end chan struct{}
}

func (s *slow) PutValue(context.Context, io.Reader) (leasehold.Large, error) {
	s.begun <- struct{}{}
	<-s.end
	return leasehold.Large{}, io.ErrUnexpectedEOF
}

// However much some clients have announced, another client still has room.
func TestUnnamedValuesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u unnamed
		k := &slow{begun: make(chan struct{}, 100), end: make(chan struct{})}
		put := func(who string, size int64) {
			ctx := engine.WithAsker(t.Context(), &policy.Asker{Principal: who})
			_, _ = u.put(ctx, k, 0, body{nil, size})
		}
		for _, who := range []string{"ann", "bob", "carl"} {
			for range 20 {
				go put(who, leasehold.MaxLarge)
			}
			synctest.Wait()
		}
		before := len(k.begun)
		if before < 8 {
			t.Errorf("%d are under way", before)
		}
		go put("dave", 1<<20)
		synctest.Wait()
		if len(k.begun) == before {
			t.Error("there is no room for somebody else")
		}
		close(k.end)
		synctest.Wait()
		if n := u.all.Now(); n != 0 || len(u.by) != 0 {
			t.Errorf("%d bytes count when all are over", n)
		}
	})
}
