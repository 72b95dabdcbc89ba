package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// Whoever says what became of a task no longer does it, although the reply to that is lost: the server gives the task
// to the next worker, and the end of a lease by its own session is not an intervention that a renewal would tell of.
func TestAWorkerThatFinishedDoesNotBelieve(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		c, other := s.Dial(t, way), s.Dial(t)
		if err := other.AddTask(t.Context(), client.NewTask{Path: "jobs/a", Attempts: 5}); err != nil {
			t.Fatal(err)
		}
		first := claim(t, c, client.TTL(10*time.Second))
		road.set(func(verb string) {
			if verb == "finish" && (first.Valid() || first.Context().Err() == nil) {
				t.Error("the server is asked to end what is still relied on")
			}
		}, losing("finish", 1000))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := first.Fail(ctx, "not today"); err == nil || errors.Is(err, client.ErrLost) {
			t.Errorf("whether it failed is not known, and the error is %v", err)
		}
		second := claim(t, other, client.TTL(10*time.Second))
		for _, after := range []time.Duration{0, time.Minute, time.Hour} {
			time.Sleep(after)
			if first.Valid() || first.Token() != 0 || !second.Valid() || second.Resource() != first.Resource() {
				t.Errorf("after %v: the first is valid %v, the second %v", after, first.Valid(), second.Valid())
			}
		}
	})
}

// refusing answers a verb with a code instead of the server.
func refusing(verb, code string) func(*road) {
	return func(r *road) {
		r.refuse = func(m message) string {
			if m.verb != verb {
				return ""
			}
			return fmt.Sprintf(`{"status":400,"code":%q,"detail":"not now"}`, code)
		}
	}
}

// A result that reached no server in time is told as soon as one can be reached, and nobody does the task again.
func TestAResultIsToldInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		c := s.Dial(t, way)
		if err := c.AddTask(t.Context(), client.NewTask{Path: "jobs/a"}); err != nil {
			t.Fatal(err)
		}
		task := claim(t, c, client.TTL(10*time.Second))
		road.change(refusing("finish", "unavailable"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := task.Done(ctx, "fine"); !errors.Is(err, leasehold.ErrUnavailable) || task.Valid() {
			t.Errorf("done: %v, and valid %v", err, task.Valid())
		}
		time.Sleep(time.Minute)
		if all, err := c.Tasks(t.Context(), "jobs/"); err != nil || all[0].State != leasehold.TaskDoing {
			t.Errorf("the task was given to others: %+v, %v", all, err)
		}
		road.change(refusing("", ""))
		time.Sleep(10 * time.Second)
		if all, err := c.Tasks(t.Context(), "jobs/"); err != nil || all[0].State != leasehold.TaskDone || all[0].Result != "fine" {
			t.Errorf("the result was not told: %+v, %v", all, err)
		}
		if err := task.Done(t.Context(), "fine"); err != nil {
			t.Errorf("done once more: %v", err)
		}
	})
}

// A task whose result is refused is given back, and one with a result that no server would take is kept.
func TestATaskWhoseResultIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		c := s.Dial(t, way)
		if err := c.AddTask(t.Context(), client.NewTask{Path: "jobs/a"}); err != nil {
			t.Fatal(err)
		}
		task := claim(t, c)
		long := strings.Repeat("x", leasehold.MaxResult+1)
		if err := task.Done(t.Context(), long); !errors.Is(err, leasehold.ErrInvalid) || !task.Valid() {
			t.Errorf("done with %d bytes: %v, and valid %v", len(long), err, task.Valid())
		}
		road.change(refusing("finish", "denied"))
		if err := task.Done(t.Context(), "fine"); !errors.Is(err, leasehold.ErrDenied) || task.Valid() {
			t.Errorf("done without the right to: %v, and valid %v", err, task.Valid())
		}
		time.Sleep(time.Second)
		if all, err := c.Tasks(t.Context(), "jobs/"); err != nil || all[0].State != leasehold.TaskTodo {
			t.Errorf("the task was not given back: %+v, %v", all, err)
		}
	})
}
