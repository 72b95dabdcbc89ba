package child

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadStat(t *testing.T) {
	const rest = " 1 0 0 0 0 0 0 0 0 20 0 "
	for text, want := range map[string]struct {
		group int
		dead  bool
	}{
		"42 (sh) S 1 40 40 0 -1" + rest + "1 0":        {40, false},
		"42 (a ) Z 1 9) Z 1 40 40 0 -1" + rest + "1 0": {40, true},
		"42 (sh) X 1 40 40 0 -1" + rest + "0 0":        {40, true},
		"42 (threads) Z 1 40 40 0 -1" + rest + "3 0":   {40, false}, // another thread goes on
		"42 (stuck) D 1 40 40 0 -1" + rest + "1 0":     {40, false},
		"42 (cut) Z 1 40":                              {40, false},
		"":                                             {0, false},
	} {
		if group, dead := readStat([]byte(text)); group != want.group || dead != want.dead {
			t.Errorf("%q: group %d, dead %v", text, group, dead)
		}
	}
}

// What left the group, and still has the mark, keeps the guard from saying that nothing is left.
func TestMarked(t *testing.T) {
	if marked("") || marked(rand.Text()) {
		t.Error("somebody has a mark that nobody was given")
	}
	mark := rand.Text()
	command := exec.Command("sleep", "60")
	command.Env = append(os.Environ(), "MARK="+mark)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	done := false
	w := watcher{then: func(string, time.Duration) { done = true }}
	w.follow(strings.NewReader(fmt.Sprintf("group 0 %s\nuntil %d\nthen end it\n", mark, now()+200*time.Millisecond)))
	if done || !marked(mark) {
		t.Error("it was not found")
	}
	_ = command.Process.Kill()
	for marked(mark) { // until it is a zombie, which has no environment
		time.Sleep(time.Millisecond)
	}
	w.follow(strings.NewReader(fmt.Sprintf("group 0 %s\nthen end it\n", mark)))
	if !done {
		t.Error("it was found after its end")
	}
	_ = command.Wait()
}
