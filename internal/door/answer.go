package door

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
)

// Limits on what answers have in memory, in bytes of names and values, from when they are read until they are sent:
// what a slow reader has not taken yet is in memory too.
const (
	MaxAnswer = 64 << 20 // of one answer

	// SmallAnswer is what an answer has that is not counted together with others.
	SmallAnswer = 64 << 10

	// answerStep is by how much the share of an answer grows, so that a long one does not count each record.
	answerStep = 256 << 10

	defaultAnswers = 512 << 20 // of all that are larger than that; one client alone can have a quarter

	// turnTime is how long one of them waits for its turn. Many read the same change at once, and clients take an error
	// for the loss of their lock.
	turnTime = 10 * time.Second
)

// newAnswers returns how many bytes of answers there may be at a time.
func newAnswers(most int) *Places {
	return NewPlaces(most, most/4, fmt.Sprintf("the answers on their way from here have as many bytes as there can "+
		"be, %d, or as one client may have, %d: take the answers that you asked for, or ask for fewer at a time, or "+
		"for less, page by page", most, most/4))
}

// An Answer counts what the answer to one request has in memory. The limits are judged before anything is made of what
// was read. Its zero value is that of an answer which has nothing yet; it belongs to one goroutine, but for Done.
type Answer struct {
	mu     sync.Mutex // guards what follows
	places *Places    // nil: it has had no share so far
	client string     // whose the share is
	share  int        // of the bytes for all answers
	ended  bool
}

// Grow says that the answer has so many bytes of names and values by now. It waits until there is room for them, or
// returns Limited: what says in a few words which answer it is, and advice what to ask for instead. The room is given
// back when ctx is over, which ends with the request, or by Done. A small answer always has room.
func (a *Answer) Grow(ctx context.Context, b *Backend, size int, what, advice string) error {
	if size > MaxAnswer {
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(
			"the answer, %s, has more than %d bytes: %s", what, MaxAnswer, advice)}
	}
	return a.Hold(ctx, b, size)
}

// Hold is Grow for an answer that is bounded already.
func (a *Answer) Hold(ctx context.Context, b *Backend, size int) error {
	if size <= SmallAnswer {
		return nil
	}
	err := a.take(ctx, b, size)
	for until := time.Now().Add(turnTime); err != nil; err = a.take(ctx, b, size) {
		if time.Now().After(until) || !b.Pause(ctx, Pause) {
			return err
		}
	}
	return nil
}

// Shrink says that the answer has only so many bytes.
func (a *Answer) Shrink(size int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if less := a.share - stepsOf(size); less > 0 {
		a.places.Give(a.client, less)
		a.share -= less
	}
}

// take takes what is missing of a share, if there is room.
func (a *Answer) take(ctx context.Context, b *Backend, size int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	more := stepsOf(size) - a.share
	if more <= 0 || a.ended {
		return nil
	}
	if a.places == nil {
		a.client = clientOf(ctx)
	}
	if err := b.answers.take(a.client, more); err != nil {
		return err
	}
	if a.places == nil {
		a.places = b.answers
		context.AfterFunc(ctx, a.Done)
	}
	a.share += more
	return nil
}

// stepsOf rounds a size up.
func stepsOf(size int) int { return (size + answerStep - 1) / answerStep * answerStep }

// Done says that the answer is sent, or given up.
func (a *Answer) Done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended = true; a.share > 0 {
		a.places.Give(a.client, a.share)
		a.share = 0
	}
}
