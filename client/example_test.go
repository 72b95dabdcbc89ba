package client_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/leasetest"
)

// dial returns a client of a server inside this process, which is what makes these
// examples run anywhere. A program says client.Dial(ctx, client.Config{}).
func dial() (c *client.Client, end func()) {
	server := leasetest.New()
	c, err := client.Dial(context.Background(), server.Config())
	if err != nil {
		panic(err)
	}
	return c, func() {
		_ = c.Close()
		_ = server.Close()
	}
}

// Nine of ten uses: do something while nobody else does it.
func Example() {
	c, end := dial()
	defer end()
	ctx := context.Background()

	err := c.Do(ctx, "prod/deploy", func(ctx context.Context, h *client.Hold) error {
		// ctx ends, with a cause, if the lease is lost. Show the token to what the lease
		// protects.
		fmt.Println("deploying with token", h.Token())
		return nil
	}, client.TTL(30*time.Second), client.Wait(5*time.Minute), client.Reason("release 311"))
	fmt.Println("error:", err)
	// Output:
	// deploying with token 1
	// error: <nil>
}

// A job that is started on many machines at once, and shall run on one. Who comes late
// does not wait: the job is being done.
func ExampleClient_TryAcquire_cronJob() {
	c, end := dial()
	defer end()
	ctx := context.Background()

	nightly := func(machine string) {
		h, err := c.TryAcquire(ctx, "reports/nightly", client.Holder(machine), client.Reason("nightly report"))
		if errors.Is(err, client.ErrHeld) {
			fmt.Printf("%s: %v\n", machine, holderOf(err))
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(machine, "writes the report")
		nightlyElsewhere(c) // while the report is written, another machine's timer fires
		_ = h.Release(ctx)
	}
	nightly("web-1")
	// Output:
	// web-1 writes the report
	// web-2: it is held by web-1 (nightly report)
}

func nightlyElsewhere(c *client.Client) {
	_, err := c.TryAcquire(context.Background(), "reports/nightly", client.Holder("web-2"))
	fmt.Printf("web-2: %v\n", holderOf(err))
}

// holderOf takes from an error who is in the way.
func holderOf(err error) string {
	var held *leasehold.Error
	if !errors.As(err, &held) || held.Lease == nil {
		return err.Error()
	}
	return fmt.Sprintf("it is held by %s (%s)", held.Lease.Holder, held.Lease.Reason)
}

// Several servers of a new release start at once, and the schema of the database is to
// be changed once. The others wait until it is.
func ExampleClient_Do_migration() {
	c, end := dial()
	defer end()
	ctx := context.Background()

	version := 0
	start := func(server string) error {
		return c.Do(ctx, "db/schema", func(ctx context.Context, h *client.Hold) error {
			if version >= 7 {
				fmt.Println(server, "finds it done")
				return nil
			}
			fmt.Println(server, "migrates")
			version = 7
			return nil
		}, client.Holder(server), client.Wait(time.Minute))
	}
	fmt.Println(start("app-1"), start("app-2"))
	// Output:
	// app-1 migrates
	// app-2 finds it done
	// <nil> <nil>
}

// One of many leads, and all know where it is.
func ExampleClient_Elect() {
	c, end := dial()
	defer end()
	ctx, stop := context.WithCancel(context.Background())

	err := c.Elect(ctx, "scheduler", []byte("http://10.0.0.7:8080"), func(ctx context.Context, h *client.Hold) error {
		leader, err := c.Leader(ctx, "scheduler")
		fmt.Printf("%s leads at %s: %v\n", leader.Holder, leader.Value, err)
		stop()
		<-ctx.Done() // lead until ctx ends
		return nil
	}, client.Holder("node-7"))
	fmt.Println("error:", err)
	// Output:
	// node-7 leads at http://10.0.0.7:8080: <nil>
	// error: <nil>
}

// What belongs to a process ends with it, all at once: its leases, and the records that
// say that it is there.
func ExampleClient_OpenSession() {
	c, end := dial()
	defer end()
	ctx := context.Background()

	session, err := c.OpenSession(ctx, client.TTL(10*time.Second), client.Label("service", "mail"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = session.Put(ctx, "services/mail/1", []byte("10.0.0.9:25"))
	h, _ := c.Acquire(ctx, "mail/queue/7", client.In(session))
	where, _ := c.Get(ctx, "services/mail/1")
	fmt.Printf("mail is at %s, and holds %s\n", where, h.Resource())

	_ = session.Close(ctx)
	_, err = c.Get(ctx, "services/mail/1")
	fmt.Println(errors.Is(err, leasehold.ErrNotFound), errors.Is(h.Err(), client.ErrSessionClosed))
	// Output:
	// mail is at 10.0.0.9:25, and holds mail/queue/7
	// true true
}

// A reservation is a lease that nobody renews: it ends by itself, and does not need the
// process that made it.
func ExampleRenewNever() {
	c, end := dial()
	defer end()
	ctx := context.Background()

	h, err := c.TryAcquire(ctx, "rooms/blue", client.TTL(time.Hour), client.Renew(client.RenewNever()),
		client.Holder("ann"), client.Reason("interview"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("until", h.Remaining().Round(time.Hour))
	_, err = c.TryAcquire(ctx, "rooms/blue", client.Holder("bob"))
	fmt.Println(holderOf(err))
	// Output:
	// until 1h0m0s
	// it is held by ann (interview)
}

// Whatever the lease protects must have the last word: a holder that was paused for too long
// between two lines cannot know that it is late.
func ExampleHold_Pass() {
	c, end := dial()
	defer end()
	ctx := context.Background()
	guard := fence.NewMemory() // in front of the disk

	write := func(h *client.Hold, pass fence.Pass) error {
		return guard.Do(ctx, h.Resource(), pass, func(context.Context) error { return nil })
	}
	first, _ := c.Acquire(ctx, "disks/7")
	pass := first.Pass()
	fmt.Println("first:", write(first, pass))
	// The first holder is paused here, and its lease ends. Another one gets it:
	_ = first.Release(ctx)
	second, _ := c.Acquire(ctx, "disks/7")
	fmt.Println("second:", write(second, second.Pass()))
	// The first one wakes up in the middle of its write:
	fmt.Println("late:", write(first, pass))
	// Output:
	// first: <nil>
	// second: <nil>
	// late: disks/7: token 1 is late: token 2 was seen; stop, and acquire the resource again
}

// A guard in the database that keeps what the lease protects.
func ExampleHold_Pass_sql() {
	update := func(ctx context.Context, db *sql.DB, h *client.Hold) error {
		guard, err := fence.NewSQL(db, fence.PostgreSQL, "")
		if err != nil {
			return err
		}
		return guard.Tx(ctx, "accounts/7", h.Pass(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7")
			return err
		})
	}
	_ = update
}

// At most this many at a time.
func ExampleClient_Semaphore() {
	c, end := dial()
	defer end()
	ctx := context.Background()

	licenses := c.Semaphore("licenses/editor", 2)
	for _, who := range []string{"ann", "bob", "eve"} {
		h, err := licenses.TryAcquire(ctx, 1, client.Holder(who))
		switch {
		case errors.Is(err, client.ErrHeld):
			fmt.Println(who, "has to wait")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println(who, "has a license, token", h.Token())
		}
	}
	// Output:
	// ann has a license, token 1
	// bob has a license, token 2
	// eve has to wait
}

// Two accounts at once, in whatever order others ask for them.
func ExampleClient_AcquireAll() {
	c, end := dial()
	defer end()
	ctx := context.Background()

	holds, err := c.AcquireAll(ctx, client.All("accounts/7", "accounts/9"), client.Reason("transfer"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range holds {
		fmt.Println(h.Resource(), h.Token())
		_ = h.Release(ctx)
	}
	// Output:
	// accounts/7 1
	// accounts/9 2
}
