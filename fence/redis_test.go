package fence_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
)

// Client libraries give texts as strings or as bytes. An answer that is none of ours is an error and
// never a yes. (That the scripts do what they should, test/fence tries on a real server.)
func TestRedisReadsAnswers(t *testing.T) {
	broken := errors.New("connection reset")
	for _, c := range []struct {
		name   string
		answer any
		err    error
		late   leasehold.Token
		fails  bool
	}{
		{name: "done", answer: []any{"done"}},
		{name: "done, in bytes", answer: []any{[]byte("done"), int64(3)}},
		{name: "done, with an error in it", answer: []any{"done", broken}, fails: true},
		{name: "late", answer: []any{"late", "9007199254740991"}, late: leasehold.MaxToken},
		{name: "late, in bytes", answer: []any{[]byte("late"), []byte("8")}, late: 8},
		{name: "no floor", answer: []any{"late", "x"}, fails: true},
		{name: "no answer", answer: nil, fails: true},
		{name: "OK", answer: "OK", fails: true},
		{name: "an empty list", answer: []any{}, fails: true},
		{name: "a failure", err: broken, fails: true},
	} {
		var keys []string
		var args []any
		guard := fence.NewRedis(func(_ context.Context, _ string, k []string, a ...any) (any, error) {
			keys, args = k, a
			return c.answer, c.err
		})
		err := guard.Set(t.Context(), "r", pass(7, 6), "data", "x")
		var late *fence.LateError
		if errors.As(err, &late) != (c.late != 0) || late != nil && late.Floor != c.late ||
			(err != nil) != (c.fails || c.late != 0) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		if !slices.Equal(keys, []string{"leasehold:fence:{r}", "data"}) || !slices.Equal(args, []any{"7", "6", "x"}) {
			t.Errorf("the script was given %v and %v", keys, args)
		}
	}
	never := fence.NewRedis(func(context.Context, string, []string, ...any) (any, error) {
		t.Error("the server was asked")
		return nil, nil
	})
	if err := never.Set(t.Context(), "r", pass(0, 0), "data", "x"); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("without a token: %v", err)
	}
	other := fence.Pass{Token: 7, Resource: "s"}
	if err := never.Set(t.Context(), "r", other, "data", "x"); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("with a pass of another resource: %v", err)
	}
}
