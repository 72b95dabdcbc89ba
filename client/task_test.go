package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/tasks"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

func claim(t *testing.T, c *client.Client, options ...client.Option) *client.Task {
	t.Helper()
	task, err := c.Claim(t.Context(), "jobs/", options...)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestTasksAreClaimedAndFinished(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, caller := s.Dial(t), operator(t, s)
		if _, err := c.Claim(t.Context(), "jobs/", client.Wait(0)); !errors.Is(err, client.ErrHeld) {
			t.Errorf("claimed where there is nothing: %v", err)
		}
		if _, err := c.Claim(t.Context(), "jobs"); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("claimed from no folder: %v", err)
		}
		time.AfterFunc(time.Minute, func() {
			_ = c.AddTask(t.Context(), client.NewTask{Path: "jobs/a", Value: []byte("one"), Attempts: 2})
		})
		first := claim(t, c)
		if first.Resource() != "jobs/a" || string(first.Value()) != "one" || first.Pass().Resource != "jobs/a" || first.Token() == 0 {
			t.Errorf("%s was claimed: %q", first.Resource(), first.Value())
		}
		time.Sleep(time.Hour)
		if err := first.Fail(t.Context(), "boom"); err != nil || first.Valid() {
			t.Errorf("it could not fail: %v", err)
		}
		second := claim(t, c)
		if err := second.Done(t.Context(), "fine"); err != nil {
			t.Error(err)
		}
		if err := second.Done(t.Context(), "fine"); err != nil {
			t.Errorf("done once more: %v", err)
		}
		task, err := tasks.Get(t.Context(), caller, "jobs/a")
		if err != nil || task.State != tasks.Done || task.Result != "fine" || task.Attempts != 2 {
			t.Errorf("it is %+v, %v", task, err)
		}
	})
}

// A worker that was cut off finds that its task was done by another, and changes nothing.
func TestALateResultIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		slow, other := s.Dial(t), s.Dial(t)
		if err := other.AddTask(t.Context(), client.NewTask{Path: "jobs/a"}); err != nil {
			t.Fatal(err)
		}
		lost := claim(t, slow)
		caller := operator(t, s)
		now := v1.Duration(0)
		if _, err := caller.Break(t.Context(), v1.BreakRequest{ID: lost.ID(), Period: &now, By: "ops"}); err != nil {
			t.Fatal(err)
		}
		taken := claim(t, other)
		if err := lost.Done(t.Context(), "late"); !errors.Is(err, client.ErrLost) {
			t.Errorf("a late result: %v", err)
		}
		if err := taken.Done(context.Background(), "mine"); err != nil {
			t.Error(err)
		}
		if task, err := tasks.Get(t.Context(), caller, "jobs/a"); err != nil || task.Result != "mine" {
			t.Errorf("it is %+v, %v", task, err)
		}
	})
}
