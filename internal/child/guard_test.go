package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a guard does after the death of its parent comes after the end of the group, and never when
// somebody else may have the lease already.
func TestGuardThen(t *testing.T) {
	soon, past := now()+time.Hour, now()-1
	if now() == 0 {
		soon, past = 0, 1
	}
	for _, c := range []struct {
		name, orders, then string
	}{
		{"the group is gone", fmt.Sprintf("group GROUP\nuntil %d\nthen end it\n", soon), "end it"},
		{"nothing was begun", "then end it\n", "end it"},
		{"what it was told last", "then end one\nthen end another\n", "end another"},
		{"the command ended by itself", fmt.Sprintf("group 77\nuntil %d\ngroup 0\nthen end it\n", past), "end it"},
		{"too late", fmt.Sprintf("group GROUP\nthen end it\nuntil %d\n", past), ""},
		{"nothing to do", "group GROUP\n", ""},
		{"a long order", "then " + strings.Repeat("x", 100<<10) + "\nthen end it\n", "end it"},
		{"a long order, and more", "then " + strings.Repeat("x", 100<<10) + "\ndone\n", ""},
		{"an order that is cut off", "then end it\nthen end anoth", "end it"},
		{"dismissed", "then end it\ndone\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			// It ignores what asks it to stop. Nobody waits for it before the guard is done: a zombie
			// must not keep the guard waiting.
			command := exec.Command("sh", "-c", `trap "" TERM INT HUP; echo ready; while :; do sleep 1; done`)
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			output, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			group := command.Process.Pid
			t.Cleanup(func() { killGroup(group); _ = command.Wait() })
			if _, err := io.ReadFull(output, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			done := ""
			w := watcher{then: func(what string, within time.Duration) {
				done = what
				if strings.Contains(c.orders, "GROUP") && groupLives(group) {
					t.Error("it was done while the group was alive")
				}
				if w := strings.Contains(c.orders, "GROUP") && now() != 0; w != (within > 0) || within > time.Hour {
					t.Errorf("it had %v", within)
				}
			}}
			w.follow(strings.NewReader(strings.ReplaceAll(c.orders, "GROUP", fmt.Sprint(group))))
			if done != c.then {
				t.Errorf("it did %q, want %q", done, c.then)
			}
		})
	}
}

// A guard that is slow to read gets every order whole, and in order.
func TestGuardIsToldInPieces(t *testing.T) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	g := &Guard{orders: ours}
	long := strings.Repeat("x", 200<<10) // more than a pipe takes
	g.Then(long)
	g.guards(77, "mark")
	if len(g.unsent) == 0 {
		t.Fatal("the pipe took everything")
	}
	told := make(chan string)
	go func() {
		b, _ := io.ReadAll(theirs)
		told <- string(b)
	}()
	for len(g.unsent) > 0 {
		g.send()
	}
	_ = ours.Close()
	if got, want := <-told, "then "+long+"\ngroup 77 mark\n"; got != want {
		t.Errorf("it was told %d bytes, want %d", len(got), len(want))
	}
}
