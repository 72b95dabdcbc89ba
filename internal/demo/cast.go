package demo

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
)

// pool is the resource whose units the GPU jobs share.
const pool = "gpu/a100"

// parts are those of the code that the agents work on.
var parts = []string{"src/login", "src/checkout", "go.mod", "docs"}

// cast lists who plays.
func cast() []role {
	all := []role{
		{"alice@laptop", maintain},
		{"cron@backup-1", orphan},
		{"dave@ops", operate},
	}
	for _, who := range []string{"ci/release-bot", "alice@laptop", "bob@desk", "ci/hotfix", "carol@home"} {
		all = append(all, role{who, deploy})
	}
	for i := range 4 {
		all = append(all, role{fmt.Sprintf("ci/runner-%d", i+1), build})
	}
	for i := range 3 {
		all = append(all, role{fmt.Sprintf("terraform@runner-%d", i+1), apply})
	}
	for _, who := range []string{"train/vision", "train/speech", "eval/nightly", "notebook/erin", "train/llm"} {
		all = append(all, role{who, train})
	}
	for _, who := range []string{"agent/fix-login", "agent/upgrade-deps", "agent/write-docs"} {
		all = append(all, role{who, edit})
	}
	for i := range 3 {
		all = append(all, role{fmt.Sprintf("scheduler-%d", i+1), lead})
	}
	return all
}

// deploy is the fight for one lease: five want it, and one after the other gets it.
func deploy(ctx context.Context, a *actor) {
	priority := 0
	if a.name == "ci/hotfix" {
		priority = 5
	}
	a.hold(ctx, "prod/deploy", a.between(8*time.Second, 25*time.Second), client.Priority(priority),
		client.Reason(a.one("release 311", "release 312", "roll back 310", "turn on new checkout")),
		client.Label("service", a.one("shop", "search", "billing")))
	a.pause(ctx, a.between(2*time.Second, 15*time.Second))
}

// build is a CI job: mostly alone, sometimes with a licence of which there are three.
func build(ctx context.Context, a *actor) {
	job := a.one("web", "api", "mobile", "docs", "search")
	labels := []client.Option{client.Label("job", fmt.Sprint(4000+a.IntN(1000))), client.Label("branch",
		a.one("main", "fix-login", "release-311"))}
	if a.IntN(3) == 0 {
		a.hold(ctx, "ci/licences", a.between(10*time.Second, 30*time.Second), append(labels, client.Slots(1, 3))...)
		return
	}
	a.hold(ctx, "ci/build/"+job, a.between(5*time.Second, 40*time.Second), labels...)
	a.pause(ctx, a.between(time.Second, 8*time.Second))
}

// train is a GPU job, which takes some units of the pool.
func train(ctx context.Context, a *actor) {
	n := 1 + a.IntN(4)
	a.hold(ctx, pool, a.between(20*time.Second, 90*time.Second), client.Slots(n, 8),
		client.Label("model", a.one("resnet", "whisper", "llama", "bert")), client.Reason(fmt.Sprintf("%d GPUs", n)))
	a.pause(ctx, a.between(3*time.Second, 20*time.Second))
}

// edit is an agent that works on a part of the code, of which others work on another.
func edit(ctx context.Context, a *actor) {
	part := a.one(parts...)
	a.hold(ctx, "repo/shop/"+part, a.between(10*time.Second, 45*time.Second),
		client.Reason(a.one("fix the tests of "+part, "split a long function", "bump dependencies")))
	a.pause(ctx, a.between(2*time.Second, 12*time.Second))
}

// lead is one of several schedulers, of which one leads until it restarts.
func lead(ctx context.Context, a *actor) {
	a.hold(ctx, "scheduler/leader", a.between(40*time.Second, 3*time.Minute), client.Label("version", "2.4.1"))
	a.pause(ctx, 5*time.Second)
}

// maintain holds one resource for longer than is usual: an alarm says so.
func maintain(ctx context.Context, a *actor) {
	a.hold(ctx, "db/primary", 20*time.Minute, client.Reason("upgrade to PostgreSQL 18, window until 18:00"),
		client.Label("ticket", "OPS-2210"))
	a.pause(ctx, 20*time.Second)
}

// orphan is a job that dies without a word: its lease runs out, and is noticed.
func orphan(ctx context.Context, a *actor) {
	_, _ = a.api.Acquire(ctx, v1.AcquireRequest{Resource: "backup/nightly", Holder: a.name,
		TTL: v1.TTL{Duration: v1.Duration(20 * time.Second)}, Reason: "dump of the shop database",
		Labels: map[string]string{"host": "backup-1"}})
	a.pause(ctx, a.between(50*time.Second, 90*time.Second))
}

// operate is a person who looks after the others: asks one to hurry, or ends what is stuck.
func operate(ctx context.Context, a *actor) {
	if !a.pause(ctx, a.between(20*time.Second, 60*time.Second)) {
		return
	}
	if a.IntN(2) == 0 {
		_ = a.Ask(ctx, "prod/deploy", "a hotfix is waiting: please wrap up soon")
		return
	}
	part := "repo/shop/" + a.one(parts...)
	r, err := a.api.Resource(ctx, part, 0)
	if err != nil || len(r.Holders) == 0 {
		return
	}
	now := v1.Duration(0)
	_, _ = a.api.Break(ctx, v1.BreakRequest{ID: r.Holders[0].ID, By: a.name, Reason: "the agent is stuck in a loop",
		Period: &now})
}
