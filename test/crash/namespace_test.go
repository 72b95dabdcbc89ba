//go:build linux

package crash

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/test/process"
)

// serveAhead starts a server in a time namespace of its own, whose monotonic clock is ahead.
func serveAhead(t *testing.T, binary, data string, ahead time.Duration) *server {
	t.Helper()
	var said bytes.Buffer
	listen := process.Reserve(t)
	cmd := exec.Command("unshare", "--kill-child", "--time", "--monotonic", fmt.Sprint(int(ahead.Seconds())),
		binary, "serve", "--listen", listen, "--data", data, "--min-free", "0")
	cmd.Env, cmd.Stderr = []string{}, &said
	p, err := process.StartCommand(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return answering(t, p, &said, listen, v1.WireHTTP)
}

// A server is killed and starts again in a time namespace whose clock is 1,000 s ahead, as a container does that is
// made anew. The kernel may give it the number of the namespace before; its lease has not ended.
func TestARestartInAnotherTimeNamespace(t *testing.T) {
	if said, err := exec.Command("unshare", "--kill-child", "--time", "--monotonic", "1", "true").CombinedOutput(); err != nil {
		t.Skipf("left out: time namespaces need a kernel that has them, root, and unshare: %v: %s", err, said)
	}
	binary := process.BuildTree(t, t.TempDir())
	data := filepath.Join(t.TempDir(), "data")
	s := serveAhead(t, binary, data, 0)
	const long = 10 * time.Minute
	first, err := s.caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "first", TTL: v1.TTL{Duration: v1.Duration(long)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{1000 * time.Second, 0, 5000 * time.Second} {
		s.End(syscall.SIGKILL)
		s = serveAhead(t, binary, data, ahead)
		r, err := s.caller.Resource(t.Context(), "r", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Holders) != 1 || r.Holders[0].Token != first.Token {
			t.Fatalf("the clock is %v ahead: held by %+v, long before the lease ends", ahead, r.Holders)
		}
		if second, err := s.caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "second",
			TTL: v1.TTL{Duration: v1.Duration(time.Minute)}}); err == nil {
			t.Fatalf("the clock is %v ahead: granted again with token %d", ahead, second.Token)
		}
	}
	s.End(syscall.SIGKILL) // unshare passes no other signal on
}
