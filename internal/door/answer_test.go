package door

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// Answers that a client does not take are counted by who it is. Others have room, and so has it for small ones.
func TestAnswersShareByClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := NewStarting(Options{Answers: 16 * mib})
		as := func(name string) (context.Context, context.CancelFunc) {
			return context.WithCancel(engine.WithAsker(t.Context(), &access.Asker{Principal: name}))
		}
		grow := func(ctx context.Context, a *Answer, size int) error {
			return a.Grow(ctx, b, size, "of a test", "ask for less")
		}
		ann, read := as("ann")
		defer read()
		var first, second, small, other, again Answer
		if err := errors.Join(grow(ann, &first, 2*mib), grow(ann, &first, 4*mib)); err != nil {
			t.Fatal(err)
		}
		if err := grow(ann, &second, mib); !errors.Is(err, leasehold.ErrLimited) {
			t.Errorf("beyond its part it is told %v", err)
		}
		if err := grow(ann, &small, SmallAnswer); err != nil {
			t.Errorf("a small answer is refused: %v", err)
		}
		bob, end := as("bob")
		defer end()
		if err := grow(bob, &other, 2*mib); err != nil {
			t.Errorf("somebody else is refused: %v", err)
		}
		if err := grow(bob, &again, MaxAnswer+1); !errors.Is(err, leasehold.ErrLimited) {
			t.Errorf("an answer beyond the limit is told %v", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- grow(ann, &second, mib) }()
		synctest.Wait()
		first.Shrink(2 * mib)
		if err := <-waited; err != nil {
			t.Errorf("it waited for its turn, and is told %v", err)
		}
		read()
		end()
		synctest.Wait()
		if n := b.answers.Now(); n != 0 {
			t.Errorf("%d bytes are counted, and nothing is on its way", n)
		}
	})
}
