package fence

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
)

func TestSQL(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db := d.open(t)
			guard, err := fence.NewSQL(db, d.dialect, "")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // it may be there already
				if err := guard.CreateTable(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			refusesWhoIsLate(t, guard)
			keepsNothingOfAFailure(t, db, guard)
			keepsTheFloorOfWhatWasWrittenElsewhere(t, guard)
			waitsForWhoIsInside(t, db, guard)
			neverGoesBack(t, db, guard)
		})
	}
}

func refusesWhoIsLate(t *testing.T, guard *fence.SQL) {
	for _, step := range []struct {
		resource     string
		token, floor leasehold.Token
		refused      leasehold.Token // the floor of the refusal
		late         bool
	}{
		{"a", 0, 0, 0, true},
		{"a", 5, 0, 0, false},
		{"a", 5, 5, 0, false},
		{"A", 3, 0, 0, false}, // another resource
		{"a ", 2, 0, 0, false},
		{"a", 4, 0, 5, true},
		{"a", 8, 6, 0, false}, // shared: 6 and 7 are alive too
		{"a", 6, 6, 0, false},
		{"a", 5, 5, 6, true},
		{"a", leasehold.MaxToken, 0, 0, false},
		{"a", 9, 0, leasehold.MaxToken, true},
		{"a", 0, 0, leasehold.MaxToken, true},
	} {
		err := guard.Do(t.Context(), step.resource, fence.Pass{Token: step.token, Floor: step.floor}, func(context.Context) error { return nil })
		var late *fence.LateError
		if errors.As(err, &late) != step.late || !step.late && err != nil || step.late && (late.Token != step.token || late.Floor != step.refused) {
			t.Errorf("%+v: %v", step, err)
		}
	}
}

// The floor and the write are one: if the write fails, the floor has not moved.
func keepsNothingOfAFailure(t *testing.T, db *sql.DB, guard *fence.SQL) {
	failure := errors.New("no room")
	err := guard.Tx(t.Context(), "failing", fence.Pass{Token: 10}, func(*sql.Tx) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
	if err := guard.Tx(t.Context(), "failing", fence.Pass{Token: 9}, func(*sql.Tx) error { return nil }); err != nil {
		t.Errorf("the floor of what was rolled back counts: %v", err)
	}
}

// What was written to another system is not rolled back, so that its floor must not be either.
func keepsTheFloorOfWhatWasWrittenElsewhere(t *testing.T, guard *fence.SQL) {
	lost := errors.New("the answer was lost")
	written := leasehold.Token(0)
	write := func(token leasehold.Token, answer error) error {
		return guard.Do(t.Context(), "elsewhere", fence.Pass{Token: token}, func(context.Context) error {
			written = token
			return answer
		})
	}
	if err := write(10, lost); !errors.Is(err, lost) {
		t.Errorf("the error is %v", err)
	}
	if err := write(9, nil); !errors.Is(err, leasehold.ErrLost) || written != 10 {
		t.Errorf("after token 10 had written, %d was the last to write: %v", written, err)
	}
	if err := write(10, nil); err != nil {
		t.Errorf("the same holder once more: %v", err)
	}
}

// A newer holder is let in only when the older one's transaction has ended.
func waitsForWhoIsInside(t *testing.T, db *sql.DB, guard *fence.SQL) {
	inside, leave := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	order := make(chan string, 2)
	wg.Go(func() {
		err := guard.Tx(t.Context(), "waiting", fence.Pass{Token: 1}, func(*sql.Tx) error {
			close(inside)
			<-leave
			order <- "old"
			return nil
		})
		if err != nil {
			t.Errorf("the older holder: %v", err)
		}
	})
	<-inside
	wg.Go(func() {
		err := guard.Tx(t.Context(), "waiting", fence.Pass{Token: 2}, func(*sql.Tx) error {
			order <- "new"
			return nil
		})
		if err != nil {
			t.Errorf("the newer holder: %v", err)
		}
	})
	// However long this is: if the newer one does not wait it has time to be first.
	time.Sleep(100 * time.Millisecond)
	close(leave)
	wg.Wait()
	if first := <-order; first != "old" {
		t.Errorf("%s wrote first", first)
	}
}

// Many holders write at once, each with its own token: what is written never goes back.
func neverGoesBack(t *testing.T, db *sql.DB, guard *fence.SQL) {
	ctx := t.Context()
	for _, statement := range []string{"CREATE TABLE written (n integer PRIMARY KEY, token bigint)", "INSERT INTO written VALUES (1, 0)"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	var (
		wg            sync.WaitGroup
		mu            sync.Mutex
		written, late int
	)
	for token := leasehold.Token(1); token <= 60; token++ {
		wg.Go(func() {
			err := guard.Tx(ctx, "written", fence.Pass{Token: token}, func(tx *sql.Tx) error {
				var before int64
				if err := tx.QueryRowContext(ctx, "SELECT token FROM written WHERE n = 1").Scan(&before); err != nil {
					return err
				}
				if leasehold.Token(before) > token {
					t.Errorf("token %d writes over %d", token, before)
				}
				_, err := tx.ExecContext(ctx, "UPDATE written SET token = "+number(token)+" WHERE n = 1")
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				written++
			case errors.Is(err, leasehold.ErrLost):
				late++
			default:
				t.Errorf("token %d: %v", token, err)
			}
		})
	}
	wg.Wait()
	t.Logf("%d wrote, %d were late", written, late)
	if written == 0 {
		t.Error("nobody wrote")
	}
}

func number(token leasehold.Token) string { return strconv.FormatUint(uint64(token), 10) }
