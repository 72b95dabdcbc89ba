package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
)

var errLimit = errors.New("it took too long")

// A context of this package can't be told from one of package context, whether or not somebody waited for it first.
func TestItEndsAsOthersDo(t *testing.T) {
	for name, wait := range map[string]bool{"waited for": true, "looked at": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				type key struct{}
				other, end := context.WithCancelCause(context.WithValue(t.Context(), key{}, 1))
				check := func(c *limit.Context, want, cause error) {
					t.Helper()
					if wait {
						<-c.Done()
					}
					if c.Err() != want || context.Cause(c) != cause {
						t.Errorf("it ends with %v, %v; want %v, %v", c.Err(), context.Cause(c), want, cause)
					}
					<-c.Done()
				}
				make := func() (_, _, _ *limit.Context) {
					late := limit.AfterCause(other, time.Second, errLimit)
					return late, limit.After(late, time.Hour), limit.Both(t.Context(), other)
				}
				late, inner, both := make()
				if wait {
					late.Done()
					inner.Done()
					both.Done()
				}
				for _, c := range []context.Context{late, inner, both} {
					if c.Err() != nil || context.Cause(c) != nil || c.Value(key{}) != 1 && c != both {
						t.Errorf("it begins with %v, %v", c.Err(), context.Cause(c))
					}
				}
				if at, ok := inner.Deadline(); !ok || time.Until(at) != time.Second {
					t.Errorf("its deadline is %v, %v", at, ok)
				}
				time.Sleep(time.Second)
				check(late, context.DeadlineExceeded, errLimit)
				check(inner, context.DeadlineExceeded, errLimit)

				late, inner, _ = make()
				under, stop := context.WithCancel(inner)
				defer stop()
				end(errLimit)
				check(late, context.Canceled, errLimit)
				check(inner, context.Canceled, errLimit)
				check(both, context.Canceled, context.Canceled)
				<-under.Done()

				stopped := limit.After(t.Context(), time.Hour)
				if wait {
					stopped.Done()
				}
				stopped.Stop()
				check(stopped, context.Canceled, context.Canceled)
			})
		})
	}
}

func TestParts(t *testing.T) {
	base, cancel := context.WithCancel(t.Context())
	defer cancel()
	also, stop := context.WithCancel(t.Context())
	defer stop()
	outer := limit.After(base, time.Minute)
	ctx := limit.After(limit.Both(limit.After(outer, time.Second), also), time.Hour)
	gotBase, gotAlso, at := limit.Parts(ctx)
	if gotBase != base || gotAlso != also || time.Until(at) > time.Second {
		t.Errorf("its parts are %v, %v, %v", gotBase, gotAlso, at)
	}
	if gotBase, gotAlso, at = limit.Parts(base); gotBase != base || gotAlso != nil || !at.IsZero() {
		t.Errorf("the parts of another are %v, %v, %v", gotBase, gotAlso, at)
	}
	many := limit.Both(ctx, base)
	if gotBase, gotAlso, at = limit.Parts(many); gotBase != many || gotAlso != nil || !at.IsZero() {
		t.Errorf("the parts of many are %v, %v, %v", gotBase, gotAlso, at)
	}
}

// What a limit costs that nobody waits for.
func BenchmarkLimit(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.Run("here", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := limit.After(ctx, time.Minute)
			if base, _, _ := limit.Parts(c); base != ctx {
				b.Fatal("it has another parent")
			}
			c.Stop()
		}
	})
	b.Run("context", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, cancel := context.WithTimeout(ctx, time.Minute)
			c.Done()
			cancel()
		}
	})
}
