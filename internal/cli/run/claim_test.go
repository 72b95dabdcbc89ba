package run

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/leasetest"
)

// This program is the gate of the commands that it runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == GateName {
		os.Exit(child.Begin(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// The command was stopped because no server answered, and then one does again, in time: the lease goes on, and the task
// would be nobody's to do for as long as this worker goes on with others.
func TestATaskOfAStoppedCommandIsGivenBack(t *testing.T) {
	t.Parallel()
	s := leasetest.Start(t)
	c := s.Dial(t, func(c *client.Config) { c.TTL = 6 * time.Second })
	if err := c.AddTask(t.Context(), client.NewTask{Path: "jobs/a"}); err != nil {
		t.Fatal(err)
	}
	task, err := c.Claim(t.Context(), "jobs/")
	if err != nil {
		t.Fatal(err)
	}
	told := filepath.Join(t.TempDir(), "told")
	e := &job{app: cli.New(), conn: &cli.Conn{}, client: c}
	e.app.Stderr = io.Discard
	e.argv = []string{"sh", "-c", `trap ": >` + told + `; exit 0" TERM; while :; do sleep 0.01; done`}
	e.ttl.Value, e.killAfter.Value = 6*time.Second, 3*time.Second
	s.Disconnect()
	go func() {
		for _, err := os.Stat(told); err != nil; _, err = os.Stat(told) {
			time.Sleep(time.Millisecond)
		}
		s.Connect()
	}()
	if _, err := e.doTask(task); !isStopped(err) {
		t.Fatalf("it was not stopped: %v", err)
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		all, err := c.Tasks(t.Context(), "jobs/")
		if err == nil && all[0].State == leasehold.TaskTodo {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("nobody can claim it: %+v, %v", all, err)
		}
	}
}
