package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

type acquireFlags struct {
	ttl         cli.TTL
	wait, grace cli.Span
	holdLimit   cli.Span
	priority    int
	id, session string
	reason      string
	labels      cli.Labels
	wanted      cli.Wanted
	resources   []string
	owner       string
	reserved    string
}

// Acquire returns the command acquire.
func Acquire(a *cli.App) *cobra.Command {
	f := acquireFlags{labels: cli.Labels{}}
	cmd := &cobra.Command{
		Use:   "acquire NAME [NAME]…",
		Short: "Ask for a resource, or several at once, and wait if you like",
		Long: `Acquire asks for a resource. If nobody holds it, the lease is yours until its TTL
is over, and for as long as you renew it before that. If somebody does, the
command ends with code 75 and says who holds it, why, and when that ends unless
they renew; with --wait it waits in the queue for up to that long.

The answer carries a token, a number that grows with every grant. Show it to what
you protect, and let that refuse any token below the largest it has seen: then a
holder that was asleep when its lease ended can do no harm.

A lease goes on after this command has ended. To be safe when an answer is lost,
propose an id of your own with --id and ask again with the same one: it is granted
once. With --session the lease has no TTL of its own and ends with the session;
with --ttl none it ends only when it is released or broken. With --ttl auto the server
picks the TTL that the last leases of its kind suggest, if you renew it, and with --ttl
unattended if you do not: twice what nineteen of twenty needed (leasehold help advise).

Several names are granted at the same moment, or none is, so that nobody holds one
and waits for the other. A wait that would never end, because those in the way wait
for you, is refused at once and the cycle is named.

A lease is exclusive unless it takes only some of the resource's slots: --slots 2
--capacity 8 takes two of eight, --shared one of many. Those who share a resource
must agree on its capacity, or it is defined (leasehold help define). Of a resource
that is defined with several slots or with units, a lease takes one unless you say
how many; --slots all takes the whole.`,
		Example: `  leasehold acquire prod/deploy --ttl 10m --wait 1h --reason "release 311" \
      --label run=881
  leasehold acquire gpu/pool --slots 2 --wait 1h      # two of those defined
  leasehold acquire license/editor --slots 1 --capacity 5    # one of five
  id=$(leasehold acquire db/migrate -o name) && ./migrate &&
      leasehold release "$id"`,
		Args:              cli.Takes(1, -1),
		ValidArgsFunction: a.Completes(-1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		f.resources, f.owner = args, c.Client.Holder
		return acquire(ctx, a, c, f)
	})
	flags := cmd.Flags()
	flags.Var(&f.ttl, "ttl", "how long the lease lasts unless it is renewed, none, or as its kind's last leases "+
		"suggest: auto if you renew it, unattended if not (default 30s, or none with --session)")
	flags.Var(&f.wait, "wait", "how long to wait in the queue if it is held (default: not at all)")
	flags.StringVar(&f.id, "id", "", "id of the lease, used once; asking again with the same is safe; several leases "+
		"get -1, -2… behind it (default: the server makes one)")
	flags.BoolVar(&f.wanted.Shared, "shared", false, "take one slot of many, beside others who share it")
	flags.Var(&f.wanted.Slots, "slots", "how many slots to take, or all, which is exclusive (default: 1 if several "+
		"are defined, else all)")
	flags.IntVar(&f.wanted.Capacity, "capacity", 0, "with --slots: how many there are, if nobody defined it")
	flags.StringVar(&f.session, "session", "", "session that the lease is bound to, instead of a TTL")
	flags.StringVar(&f.reason, "reason", "", "why you need it, shown to others who are refused")
	flags.Var(f.labels, "label", "more about the holder, such as run=881; may be given again")
	flags.Var(&f.grace, "grace", "how long the resource rests if the lease ends without a release (default 0s)")
	flags.Var(&f.holdLimit, "hold-limit", "total time that it may be held, renewals included (default: no limit)")
	flags.StringVar(&f.reserved, "reservation", "", "claim this reservation, which says how much is taken")
	flags.IntVar(&f.priority, "priority", 0, "with --wait: larger ones go first, from -1000 to 1000")
	a.SettingFlag(cmd, "holder", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

// sayReserved tells who holds a resource that somebody else reserved it.
func sayReserved(a *cli.App, l v1.Lease) {
	if u := l.Reserved; u != nil {
		zone := a.Now().Location()
		a.Say("%s is reserved for %s from %s to %s", l.Resource, cli.Because(u.Holder, u.Reason),
			u.From.In(zone).Format("Mon 15:04"), u.Until.In(zone).Format("Mon 15:04"))
	}
}

func (f *acquireFlags) request(ctx context.Context, c *cli.Conn) (v1.AcquireRequest, error) {
	r := v1.AcquireRequest{
		Resource: f.resources[0], Holder: f.owner, ID: f.leaseID(0), TTL: f.ttl.TTL,
		Session: f.session, Reason: f.reason, Labels: f.labels,
		Wait: v1.Duration(f.wait.Value), Grace: v1.Duration(f.grace.Value), HoldLimit: v1.Duration(f.holdLimit.Value),
		Priority: f.priority, Reservation: f.reserved,
	}
	if r.Holder == "" {
		r.Holder = cli.Holder()
	}
	if f.reserved != "" && len(f.resources) == 1 && f.wanted == (cli.Wanted{}) {
		return r, nil // it says how many slots
	}
	for i, name := range f.resources {
		slots, capacity, err := f.wanted.Of(ctx, c, name)
		if err != nil {
			return r, err
		}
		item := v1.AcquireItem{Resource: name, ID: f.leaseID(i), Shared: f.wanted.Shared, Slots: v1.Slots(slots),
			Capacity: capacity}
		if i > 0 {
			r.Also = append(r.Also, item)
			continue
		}
		r.Shared, r.Slots, r.Capacity = item.Shared, item.Slots, item.Capacity
	}
	return r, nil
}

// leaseID returns the id of one of the leases, derived from the one that was given: a retry of the
// whole command then proposes the same ids.
func (f *acquireFlags) leaseID(i int) string {
	if f.id == "" || len(f.resources) == 1 {
		return f.id
	}
	return fmt.Sprintf("%s-%d", f.id, i+1)
}

func acquire(ctx context.Context, a *cli.App, c *cli.Conn, f acquireFlags) error {
	request, err := f.request(ctx, c)
	if err != nil {
		return err
	}
	lease, err := acquireOrWithdraw(ctx, a, c, request)
	if err != nil {
		return explainAcquire(c, err, request)
	}
	if lease.Warning != "" {
		a.Say("warning: %s", lease.Warning)
	}
	leases := allOf(lease)
	for _, l := range leases {
		if l.After != nil {
			SayUnclean(a, l.After.Holder, l.Resource, l.After.How)
		}
		sayReserved(a, l)
	}
	if err := a.PrintLeases(leases); err != nil {
		return err
	}
	sayWhatNext(a, c, leases)
	return nil
}

// SayUnclean warns that the holder before may have left work half done.
func SayUnclean(a *cli.App, holder, resource, how string) {
	a.Say("warning: the lease of %s on %s before this one ended uncleanly (%s): look before you go on", holder,
		resource, how)
}

// allOf returns a lease and those that were granted at the same moment.
func allOf(lease v1.Lease) []v1.Lease {
	list := append([]v1.Lease{lease}, lease.Also...)
	list[0].Also = nil
	return list
}

// acquireOrWithdraw acquires. If the person loses patience, it leaves the queue, or gives back what
// it just got: nobody would renew it.
func acquireOrWithdraw(ctx context.Context, a *cli.App, c *cli.Conn, request v1.AcquireRequest) (v1.Lease, error) {
	waiting, answered := context.WithCancel(ctx)
	told := tellWhoIsInTheWay(waiting, a, c, request)
	lease, err := acquireFresh(ctx, c, request)
	answered()
	<-told
	if err == nil || ctx.Err() == nil {
		return lease, err
	}
	if request.Wait == 0 {
		// It may be the second try of what was granted long ago: not ours to undo.
		a.Say("stopped: see whether it was granted with: %s", c.Again("describe", request.Resource))
		return lease, err
	}
	// The server takes back what it named itself as soon as we are gone. What has a
	// name that we know would stay.
	if ids := namesOf(request, lease); ids[0] != "" {
		for _, id := range ids {
			undo := c.Release(context.WithoutCancel(ctx), v1.ReleaseRequest{ID: id})
			if undo != nil && !IsNone(undo) {
				a.Say("the request for %s could not be withdrawn: %v\nmake sure of it with: %s", request.Resource, undo,
					c.Again(append([]string{"release"}, ids...)...))
				return lease, err
			}
		}
	}
	a.Say("stopped: the request for %s was withdrawn", request.Resource)
	return lease, err
}

// namesOf returns the ids of all that was asked for, as far as they are known.
func namesOf(request v1.AcquireRequest, lease v1.Lease) []string {
	ids := []string{cmp.Or(request.ID, lease.ID)}
	for i, item := range request.Also {
		if i < len(lease.Also) {
			item.ID = lease.Also[i].ID
		}
		ids = append(ids, item.ID)
	}
	return ids
}

// acquireFresh acquires, and renews a grant that was waited for once: its time began before we
// heard of it, so what it said about the remaining time may be long out of date.
func acquireFresh(ctx context.Context, c *cli.Conn, request v1.AcquireRequest) (v1.Lease, error) {
	granted, err := c.Acquire(ctx, request)
	if err != nil || granted.WaitedMS == 0 || granted.Session != "" {
		return granted, err
	}
	leases := allOf(granted)
	for i, l := range leases {
		fresh, err := c.Renew(ctx, v1.RenewRequest{ID: l.ID})
		if err != nil {
			return granted, err
		}
		fresh.WaitedMS, fresh.Warning = l.WaitedMS, l.Warning
		leases[i] = fresh
	}
	lease := leases[0]
	lease.Also = leases[1:]
	return lease, nil
}

// IsNone reports whether there was nothing to release.
func IsNone(err error) bool {
	return errors.Is(err, leasehold.ErrNotFound) || errors.Is(err, leasehold.ErrLost)
}

// tellWhoIsInTheWay says who is in the way, if the answer takes more than a moment. The channel is
// closed when nothing more will be said, so that no line appears after the result.
func tellWhoIsInTheWay(ctx context.Context, a *cli.App, c *cli.Conn, request v1.AcquireRequest) <-chan struct{} {
	done := make(chan struct{})
	if request.Wait == 0 || a.Quiet {
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
				a.Say("waiting up to %s: %s is held by %s; %s; %d waiting", request.Wait, r.Resource,
					cli.Because(h.Holder, h.Reason), cli.Outlook(h, r.Usual), r.Waiting)
			}
		}
	}()
	return done
}

// explainAcquire adds what to try next. An undecided acquire is safe to repeat only with an id
// of its own.
func explainAcquire(c *cli.Conn, err error, request v1.AcquireRequest) error {
	switch {
	case request.Reservation != "" && errors.Is(err, leasehold.ErrHeld):
		return cli.Hint(err, "run a command when it begins: %s", c.Again("run", request.Resource, "--reservation",
			request.Reservation, "--", "COMMAND"))
	case request.Reservation != "" && errors.Is(err, leasehold.ErrNotFound):
		return cli.Hint(err, "see what is reserved: %s", c.Again("reservations", request.Resource))
	case errors.Is(err, leasehold.ErrHeld) && request.Wait == 0:
		return cli.Hint(err, "wait in the queue: %s\nsee who waits: %s",
			c.Again("acquire", request.Resource, "--wait", "1m"), c.Again("describe", request.Resource))
	case errors.Is(err, leasehold.ErrHeld):
		return cli.Hint(err, "see who waits: %s", c.Again("describe", request.Resource))
	case errors.Is(err, leasehold.ErrUndecided) && request.ID != "":
		return cli.Hint(err, "find out by giving the same command again: the id %s is granted once", request.ID)
	case errors.Is(err, leasehold.ErrUndecided):
		return cli.Hint(err, "see whether it happened: %s", c.Again("describe", request.Resource))
	}
	return err
}

// sayWhatNext shows the commands that renew the lease and release it.
func sayWhatNext(a *cli.App, c *cli.Conn, leases []v1.Lease) {
	lease, it := leases[0], "it"
	var ids []string
	for _, l := range leases {
		ids = append(ids, l.ID)
	}
	if len(leases) > 1 {
		it = "them"
	}
	switch {
	case a.Output == cli.FormatName:
		return // a script that reads the id knows what to do with it
	case lease.Session != "" && len(leases) > 1:
		a.Say("they last as long as session %s", lease.Session)
	case lease.Session != "":
		a.Say("it lasts as long as session %s", lease.Session)
	case lease.RemainingMS != nil:
		a.Say("renew %s within %s: %s", it, cli.Left(lease), c.Again(append([]string{"renew"}, ids...)...))
	}
	a.Say("give %s back: %s", it, c.Again(append([]string{"release"}, ids...)...))
}
