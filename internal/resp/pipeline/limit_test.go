package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
)

// A caller's time limit is kept to the moment, by the one timer of the connection, and the connection goes on.
func TestTimeLimits(t *testing.T) {
	for name, patience := range map[string]Patience{"patient": {}, "usual": testPatience} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Patience: patience}, func(t *testing.T, c *Conn, p *peer) {
				var wg sync.WaitGroup
				give := func(command string, d time.Duration) {
					wg.Go(func() {
						began := time.Now()
						_, err := ask(limit.After(t.Context(), d), c, command)
						if !wasSent(t, err) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != d {
							t.Errorf("%s ends after %v: %v", command, time.Since(began), err)
						}
					})
					p.next()
				}
				give("a", 900*time.Millisecond)
				give("b", 300*time.Millisecond)
				give("c", 30*time.Millisecond)
				wg.Wait()
				p.say("+a\r\n+b\r\n+c\r\n")
				go p.echo()
				for i := range 3 {
					if got, err := ask(limit.After(t.Context(), time.Second), c, fmt.Sprint(i)); got != fmt.Sprint(i) || err != nil {
						t.Errorf("then %d is answered by %q, %v", i, got, err)
					}
				}
			})
		})
	}
}

func TestASecondContextEndsACall(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		also, end := context.WithCancel(t.Context())
		go func() {
			p.next()
			end()
		}()
		_, err := ask(limit.Both(limit.After(t.Context(), time.Hour), also), c, "a")
		if !wasSent(t, err) || !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// Replies, limits and cancellations that come at the same moment: every caller gets its own reply or none, also by
// calls that are used again.
func TestLimitsAndRepliesMeet(t *testing.T) {
	bubble(t, Config{Patience: testPatience}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			for command := p.next(); command != ""; command = p.next() {
				time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
				p.say(fmt.Sprintf("+%s\r\n", command))
			}
		}()
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for n := range 300 {
					ctx, cancel := context.WithCancel(t.Context())
					if n%3 == 0 {
						time.AfterFunc(time.Duration(rand.IntN(30))*time.Millisecond, cancel)
					}
					want := fmt.Sprint(i, ".", n)
					got, err := ask(limit.After(ctx, time.Duration(1+rand.IntN(30))*time.Millisecond), c, want)
					var lost *LostError
					if err == nil && got != want || err != nil && !errors.As(err, &lost) {
						t.Errorf("%s is answered by %q, %v", want, got, err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if got, err := ask(t.Context(), c, "last"); got != "last" || err != nil {
			t.Errorf("the last is answered by %q, %v", got, err)
		}
	})
}
