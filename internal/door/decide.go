package door

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
)

// How often a request looks again before it is told to come back.
const (
	MaxLooks     = 64 // because something else was there by the time it acted
	maxUndecided = 3  // because nobody could tell whether its command had happened
)

// A Step reads, decides by what it read, and does one command which compares that what it read
// is still so. It reports whether it is done: it is not if the command found something else.
//
// tried says that an earlier command of this request may have happened although nobody could
// tell: the step then looks whether what it wants is there already.
type Step func(tried bool) (done bool, err error)

// Decide runs a step until it decides. busy is returned when it was overtaken too often.
func Decide(ctx context.Context, busy error, step Step) error {
	tried, undecided := false, 0
	for range MaxLooks {
		done, err := step(tried)
		switch {
		case errors.Is(err, leasehold.ErrUndecided) && ctx.Err() == nil && undecided < maxUndecided:
			tried, undecided = true, undecided+1
			continue
		case err != nil || done:
			return err
		}
	}
	return busy
}

// Clients of some protocols try again a few times and then give up, so an election or a restart
// has to be over by then: their door waits it out with them.
const (
	patience = 2 * time.Second
	Pause    = 50 * time.Millisecond // between two tries
)

// Patiently tries again, for a while, what could not be done or decided. Only what may be done
// twice can be tried so.
func (b *Backend) Patiently(ctx context.Context, try func() error) error {
	var since time.Time
	for {
		err := try()
		if !Unsure(err) {
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) >= patience || !b.Pause(ctx, Pause) {
			return err
		}
	}
}

// Unsure reports whether asking again may have another result: the server could not do it, or
// nobody can tell whether it did.
func Unsure(err error) bool {
	return errors.Is(err, leasehold.ErrUnavailable) || errors.Is(err, leasehold.ErrUndecided)
}
