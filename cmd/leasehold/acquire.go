package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

type acquireFlags struct {
	ttl             ttl
	wait, grace     span
	holdLimit       span
	priority        int
	id, session     string
	reason          string
	labels          labels
	resource, owner string
}

func (a *app) acquireCommand() *cobra.Command {
	f := acquireFlags{labels: labels{}}
	cmd := &cobra.Command{
		Use:   "acquire NAME",
		Short: "Ask for a resource, and wait for it if you like",
		Long: `Acquire asks for a resource. If nobody holds it, the lease is yours until its TTL
is over, and for as long as you renew it before that. If somebody does, the
command ends with code 75 and says who, why and for how much longer; with --wait
it stands in the queue for up to that long.

The answer carries a token, a number that grows with every grant. Show it to what
you protect, and let that refuse any token below the largest it has seen: then a
holder that was asleep when its lease ended can do no harm.

A lease goes on after this command has ended. To be safe when an answer is lost,
propose an id of your own with --id and ask again with the same one: it is granted
once. With --session the lease has no TTL of its own and ends with the session;
with --ttl none it ends only when it is released or broken.`,
		Example: `  leasehold acquire prod/deploy --reason "release 311"
  leasehold acquire prod/deploy --ttl 10m --wait 1h --label run=881
  id=$(leasehold acquire db/migrate -o name) && ./migrate && leasehold release "$id"`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		f.resource, f.owner = args[0], c.client.Holder
		return a.acquire(ctx, c, f)
	})
	flags := cmd.Flags()
	flags.Var(&f.ttl, "ttl", "how long the lease lasts unless it is renewed, or none (default 30s, or none with --session)")
	flags.Var(&f.wait, "wait", "how long to stand in the queue if it is held (default: not at all)")
	flags.StringVar(&f.id, "id", "", "id of the lease, used once; asking again with the same is safe (default: the server makes one)")
	flags.StringVar(&f.session, "session", "", "session that the lease is bound to, instead of a TTL")
	flags.StringVar(&f.reason, "reason", "", "why you need it, shown to whoever is refused")
	flags.Var(f.labels, "label", "more about the holder, such as run=881; may be given again")
	flags.Var(&f.grace, "grace", "how long the resource rests if the lease ends without a release (default 0s)")
	flags.Var(&f.holdLimit, "hold-limit", "how long it may be held in all, however often it is renewed (default: no limit)")
	flags.IntVar(&f.priority, "priority", 0, "with --wait: larger ones go first, from -1000 to 1000")
	settingFlag(cmd, "holder", "")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (f *acquireFlags) request() v1.AcquireRequest {
	r := v1.AcquireRequest{
		Resource: f.resource, Holder: f.owner, ID: f.id, TTL: f.ttl.TTL, Session: f.session, Reason: f.reason, Labels: f.labels,
		Wait: v1.Duration(f.wait.value), Grace: v1.Duration(f.grace.value), HoldLimit: v1.Duration(f.holdLimit.value),
		Priority: f.priority,
	}
	if r.Holder == "" {
		r.Holder = holder()
	}
	return r
}

func (a *app) acquire(ctx context.Context, c *conn, f acquireFlags) error {
	request := f.request()
	lease, err := a.acquireOrWithdraw(ctx, c, request)
	if err != nil {
		return c.explainAcquire(err, request)
	}
	if lease.Warning != "" {
		a.say("warning: %s", lease.Warning)
	}
	if err := a.printLeases([]v1.Lease{lease}); err != nil {
		return err
	}
	a.sayWhatNext(c, lease)
	return nil
}

// acquireOrWithdraw leaves the queue, or gives back what it just got, if the person
// loses patience.
func (a *app) acquireOrWithdraw(ctx context.Context, c *conn, request v1.AcquireRequest) (v1.Lease, error) {
	waiting, answered := context.WithCancel(ctx)
	told := a.tellWhoIsInTheWay(waiting, c, request)
	lease, err := c.acquireFresh(ctx, request)
	answered()
	<-told
	if err == nil || ctx.Err() == nil {
		return lease, err
	}
	if request.Wait == 0 {
		// It may be the second try of what was granted long ago: not ours to undo.
		a.say("stopped: see whether it was granted with: %s", c.again("describe", request.Resource))
		return lease, err
	}
	// The server takes back what it named itself as soon as we are gone. What has a
	// name that we know would stay.
	if id := cmp.Or(request.ID, lease.ID); id != "" {
		undo := c.Release(context.WithoutCancel(ctx), v1.ReleaseRequest{ID: id})
		if undo != nil && !isNone(undo) {
			a.say("the request for %s could not be withdrawn: %v\nmake sure of it with: %s", request.Resource, undo, c.again("release", id))
			return lease, err
		}
	}
	a.say("stopped: the request for %s was withdrawn", request.Resource)
	return lease, err
}

// acquireFresh renews a grant that was waited for, once: its time began to run
// before we heard of it.
func (c *conn) acquireFresh(ctx context.Context, request v1.AcquireRequest) (v1.Lease, error) {
	granted, err := c.Acquire(ctx, request)
	if err != nil || granted.WaitedMS == 0 || granted.Session != "" {
		return granted, err
	}
	lease, err := c.Renew(ctx, v1.RenewRequest{ID: granted.ID})
	if err != nil {
		return granted, err
	}
	lease.WaitedMS, lease.Warning = granted.WaitedMS, granted.Warning
	return lease, nil
}

// isNone tells whether there was nothing to take back.
func isNone(err error) bool {
	return errors.Is(err, leasehold.ErrNotFound) || errors.Is(err, leasehold.ErrLost)
}

// tellWhoIsInTheWay says why it takes so long, if it does. The channel is closed
// when nothing more will be said.
func (a *app) tellWhoIsInTheWay(ctx context.Context, c *conn, request v1.AcquireRequest) <-chan struct{} {
	done := make(chan struct{})
	if request.Wait == 0 || a.quiet {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
			if r, err := c.Resource(ctx, request.Resource, 1); err == nil && len(r.Holders) > 0 {
				h := r.Holders[0]
				a.say("waiting up to %s: %s is held by %s; %s left, %d waiting", request.Wait, r.Resource, because(h.Holder, h.Reason), left(h), r.Waiting)
			}
		}
	}()
	return done
}

func (c *conn) explainAcquire(err error, request v1.AcquireRequest) error {
	switch {
	case errors.Is(err, leasehold.ErrHeld) && request.Wait == 0:
		return hint(err, "stand in the queue: %s\nsee who waits: %s", c.again("acquire", request.Resource, "--wait", "1m"), c.again("describe", request.Resource))
	case errors.Is(err, leasehold.ErrHeld):
		return hint(err, "see who waits: %s", c.again("describe", request.Resource))
	case errors.Is(err, leasehold.ErrUndecided) && request.ID != "":
		return hint(err, "find out by giving the same command again: the id %s is granted once", request.ID)
	case errors.Is(err, leasehold.ErrUndecided):
		return hint(err, "see what became of it: %s", c.again("describe", request.Resource))
	}
	return err
}

func (a *app) sayWhatNext(c *conn, lease v1.Lease) {
	switch {
	case a.output == formatName:
		return // a script that reads the id knows what to do with it
	case lease.Session != "":
		a.say("it lasts as long as session %s", lease.Session)
	case lease.RemainingMS != nil:
		a.say("renew it within %s: %s", left(lease), c.again("renew", lease.ID))
	}
	a.say("give it back: %s", c.again("release", lease.ID))
}
