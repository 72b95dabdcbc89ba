package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func messageTests() []test {
	return []test{
		{name: "messages/lost replies", run: lostReplies},
		{name: "messages/repeated", run: repeatedMessages},
		{name: "messages/a late acquire", run: lateAcquire},
		{name: "messages/release races with acquire", run: releaseRaces},
		{name: "messages/late renewals", run: lateRenewals},
		{name: "messages/a context that has ended", run: endedContext},
	}
}

// A fate is what becomes of a message.
type fate int

const (
	delivered fate = iota
	lostReply      // it arrives, and its answer does not
	lostWhole      // it does not arrive
	repeated       // it arrives twice
	delayed        // it arrives later, and nobody waits for its answer
)

// A lossy store is one behind a bad network. Only the four verbs that change something suffer from it.
type lossy struct {
	store.Store
	fate func() fate
	late time.Duration // how late what is delayed arrives

	survive func()
	pending sync.WaitGroup // what is delayed
}

var errLost = &leasehold.Error{Code: leasehold.Undecided, Message: "the answer was lost on its way"}

// send carries out a call as its fate wants it.
func send[A any](ctx context.Context, l *lossy, call func(context.Context) (A, error)) (answer A, err error) {
	switch l.fate() {
	case lostReply:
		_, _ = call(ctx)
		return answer, errLost
	case lostWhole:
		return answer, errLost
	case repeated:
		_, _ = call(ctx)
	case delayed:
		l.pending.Go(func() {
			defer l.survive()
			time.Sleep(l.late)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			_, _ = call(ctx)
		})
		return answer, errLost
	}
	return call(ctx)
}

func (l *lossy) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	return send(ctx, l, func(ctx context.Context) (store.Grant, error) { return l.Store.Acquire(ctx, r) })
}

func (l *lossy) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	return send(ctx, l, func(ctx context.Context) ([]store.Renewal, error) { return l.Store.Renew(ctx, leases...) })
}

func (l *lossy) Release(ctx context.Context, r store.ReleaseRequest) error {
	_, err := send(ctx, l, func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Store.Release(ctx, r) })
	return err
}

func (l *lossy) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	return send(ctx, l, func(ctx context.Context) (leasehold.Lease, error) { return l.Store.Break(ctx, r) })
}

// network returns a store behind a bad network.
func (k *kit) network(s store.Store, f func() fate) *lossy {
	l := &lossy{Store: s, fate: f, late: k.TTL / 4, survive: k.survive}
	k.Cleanup(l.pending.Wait)
	return l
}

// lose makes the network of a case bad until the next call of it: the first message has a fate, and
// those after it are delivered.
func (k *kit) lose(f fate, call func()) {
	good := k.store
	first := true
	bad := k.network(good, func() fate {
		if first {
			first = false
			return f
		}
		return delivered
	})
	k.store = bad
	call()
	k.store = good
	bad.pending.Wait()
}

// retry carries out a call until it is answered.
func (k *kit) retry(call func() error) error {
	err := call()
	for n := 0; n < 10 && store.Transient(err); n++ {
		err = call()
	}
	return err
}

// Whichever message or answer is lost: the same request again finds what the first one did.
func lostReplies(k *kit) {
	for _, f := range []fate{lostReply, lostWhole, delayed} {
		r := k.ref(fmt.Sprint("r", f), fmt.Sprint("a", f))
		request := k.longer(r)
		var grant store.Grant
		k.lose(f, func() {
			if err := k.retry(func() (err error) { grant, err = k.ask(request); return err }); err != nil {
				k.Fatalf("acquire was asked again, and answered with %v", err)
			}
		})
		if again := k.get(request); again.Token != grant.Token {
			k.Errorf("the first answer was lost: the retries got the tokens %d and %d", grant.Token, again.Token)
		}
		k.lose(f, func() {
			var list []store.Renewal
			err := k.retry(func() (err error) { list, err = k.store.Renew(k.Context(), r); return err })
			if err != nil || list[0].Ended != nil || list[0].Token != grant.Token {
				k.Errorf("renew was asked again, and answered with %+v, %v", list, err)
			}
		})
		k.lose(f, func() {
			err := k.retry(func() error { _, err := k.breakLease(r); return err })
			if err != nil && !errors.Is(err, leasehold.ErrLost) && !errors.Is(err, leasehold.ErrNotFound) {
				k.Errorf("break was asked again, and answered with %v", err)
			}
		})
		k.lose(f, func() {
			err := k.retry(func() error {
				return k.store.Release(k.Context(), store.ReleaseRequest{Leases: []store.Ref{r}, Withdraw: true})
			})
			if err != nil {
				k.Errorf("release was asked again, and answered with %v", err)
			}
		})
		k.denied(request, leasehold.Lost)
		k.larger(k.free(r.Resource), grant.Token, "lost answers")
	}
}

func repeatedMessages(k *kit) {
	r := k.ref("r", "a")
	request := k.longer(r)
	var grant store.Grant
	k.lose(repeated, func() { grant = k.get(request) })
	if again := k.get(request); again.Token != grant.Token {
		k.Errorf("the second of two equal messages got token %d, a third %d", grant.Token, again.Token)
	}
	k.lose(repeated, func() { k.alive(r) })
	k.lose(repeated, func() { k.release(r) })
	b := k.ref("r", "b")
	theirs := k.get(k.longer(b))
	k.lose(repeated, func() { k.release(r) })
	if _, err := k.breakLease(r); err == nil {
		k.Errorf("a lease that was released was broken")
	}
	if now := k.alive(b); now.Token != theirs.Token {
		k.Errorf("the next holder had token %d, and has %d", theirs.Token, now.Token)
	}
}

// An acquire that was cancelled arrives after the release that took it back.
func lateAcquire(k *kit) {
	for _, taken := range []bool{false, true} {
		r := k.ref(fmt.Sprint("r", taken), fmt.Sprint("a", taken))
		bad := k.network(k.store, func() fate { return delayed })
		if _, err := k.askOf(bad, k.longer(r)); !store.Transient(err) {
			k.Fatalf("a message that was delayed was answered: %v", err)
		}
		k.release(r)
		if taken {
			k.get(k.longer(k.ref(fmt.Sprint("r", taken), "b")))
		}
		bad.pending.Wait()
		if taken {
			k.alive(k.ref(fmt.Sprint("r", taken), "b"))
			k.release(k.ref(fmt.Sprint("r", taken), "b"))
		}
		k.over(r, 0)
		k.free(r.Resource)
	}
}

// An acquire and its release are under way at the same time. Whichever comes first: in the end the
// id has nothing.
func releaseRaces(k *kit) {
	other := k.second()
	for i := range 20 {
		r := k.ref("r", strconv.Itoa(i))
		request := k.longer(r)
		request.Wait = k.TTL
		k.together(2, func(n int) {
			if n == 0 {
				_, _ = k.askOf(other, request)
			} else {
				k.release(r)
			}
		})
		k.over(r, 0)
		k.free(r.Resource)
	}
}

// Renewals that arrive late revive nothing, and do not touch the next holder.
func lateRenewals(k *kit) {
	r, next := k.ref("r", "a"), k.ref("r", "b")
	k.get(k.longer(r))
	bad := k.network(k.store, func() fate { return delayed })
	for range 3 {
		_, _ = bad.Renew(k.Context(), r)
	}
	_ = bad.Release(k.Context(), store.ReleaseRequest{Leases: []store.Ref{r}, Withdraw: true})
	k.release(r)
	sent := time.Now()
	theirs := k.acquire(next)
	bad.pending.Wait()
	if now := k.acquire(next); now.Token != theirs.Token || now.Remaining > k.TTL-k.TTL/5+k.Slack {
		k.Errorf("late messages about %s: the next holder has token %d and %v left after %v, want %d and less", r.ID,
			now.Token, now.Remaining, time.Since(sent), theirs.Token)
	}
	k.over(r, 0)
}

// A call whose context ended does not wait for an answer, and its error is no decision.
func endedContext(k *kit) {
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	r := k.ref("r", "a")
	release := store.ReleaseRequest{Leases: []store.Ref{r}, Withdraw: true}
	for verb, call := range map[string]func() error{
		"acquire": func() error { _, err := k.store.Acquire(ctx, k.longer(r)); return err },
		"renew":   func() error { _, err := k.store.Renew(ctx, r); return err },
		"release": func() error { return k.store.Release(ctx, release) },
		"break":   func() error { _, err := k.store.Break(ctx, store.BreakRequest{Ref: r}); return err },
		"read":    func() error { _, err := k.store.Read(ctx, r.Resource); return err },
		"list":    func() error { _, err := k.store.List(ctx, store.Query{}); return err },
	} {
		if err := call(); !store.Transient(err) {
			k.Errorf("%s with a context that has ended: %s", verb, describe(err))
		}
	}
	k.release(r)
	k.free(r.Resource)
}
