package storetest

import (
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// claimsTasks claims tasks from a folder, finishes one with its token, and lets another be given back.
func claimsTasks(k *kit) {
	ctx, cancel := k.within(0)
	defer cancel()
	tasks, folder := with[store.Tasks](k), k.res("jobs")+"/"
	k.denied(k.request(store.Ref{Resource: folder, ID: k.id("none")}), leasehold.Held)
	for name, priority := range map[string]int{"low": 0, "high": 5} {
		r := store.TaskRequest{Path: folder + name, Value: []byte("v"), Priority: priority}
		if err := errors.Join(tasks.PutTask(ctx, r), tasks.PutTask(ctx, r)); err != nil {
			k.Fatal(err)
		}
	}
	first := k.acquire(store.Ref{Resource: folder, ID: k.id("a")})
	second := k.acquire(store.Ref{Resource: folder, ID: k.id("b")})
	if first.Resource != folder+"high" || second.Resource != folder+"low" {
		k.Fatalf("%s and %s were claimed, in this order", first.Resource, second.Resource)
	}
	finish := func(g store.Grant, token leasehold.Token) error {
		return tasks.FinishTask(ctx, store.FinishRequest{
			Lease: store.Ref{Resource: g.Resource, ID: g.ID}, Token: token, Result: "r",
		})
	}
	if err := finish(second, first.Token); !errors.Is(err, leasehold.ErrLost) {
		k.Errorf("finished with the token of another: %s", describe(err))
	}
	for range 2 { // its first answer may have been lost
		if err := finish(first, first.Token); err != nil {
			k.Errorf("it could not be finished: %s", describe(err))
		}
	}
	listed, err := tasks.ListTasks(ctx, folder)
	if err != nil || len(listed) != 2 || listed[0].Path != first.Resource || listed[0].State != leasehold.TaskDone ||
		listed[0].Result != "r" || listed[1].State != leasehold.TaskDoing || listed[1].Token != second.Token {
		k.Errorf("the tasks are %+v: %s", listed, describe(err))
	}
	// Given back, it can be claimed again, and what the first says about it is refused.
	released := store.ReleaseRequest{Leases: []store.Ref{{Resource: second.Resource, ID: second.ID}}}
	if err := k.store.Release(ctx, released); err != nil {
		k.Fatal(err)
	}
	if err := finish(second, second.Token); !errors.Is(err, leasehold.ErrLost) {
		k.Errorf("finished after it was given back: %s", describe(err))
	}
	third := k.acquire(store.Ref{Resource: folder, ID: k.id("c")})
	if third.Resource != second.Resource || third.Token <= second.Token {
		k.Errorf("%s with token %d was claimed after %s with %d", third.Resource, third.Token, second.Resource,
			second.Token)
	}
}
