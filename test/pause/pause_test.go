// Package pause stops real holders past their TTL and lets them go on.
package pause

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

const (
	rounds = 50
	ttl    = 500 * time.Millisecond
)

// The test's own binary is the holder, too.
func TestMain(m *testing.M) {
	if store := os.Getenv("PAUSE_TEST_STORE"); store != "" {
		os.Exit(hold(store, os.Getenv("PAUSE_TEST_RESOURCE")))
	}
	os.Exit(m.Run())
}

// hold is a holder that writes as fast as it can, without looking at its lease: as if it
// were always paused between the look and the write. It ends when it is refused.
func hold(store, resource string) int {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{TTL: ttl})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	h, err := c.Acquire(ctx, resource)
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	pass := h.Pass()
	fmt.Println("holds", pass.Token)
	for n := 0; ; n++ {
		status, err := write(ctx, store, resource, pass)
		if err != nil {
			fmt.Println("error:", err)
			return 1
		}
		if n == 0 {
			fmt.Println("writes")
		}
		if status != http.StatusOK {
			fmt.Println("refused", status, "valid", h.Valid(), "cause", h.Err())
			return 0
		}
	}
}

func write(ctx context.Context, store, resource string, pass fence.Pass) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, store+"/"+resource, nil)
	if err != nil {
		return 0, err
	}
	pass.Set(r.Header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// A store remembers the tokens of what was written to it.
type store struct {
	mu      sync.Mutex // guards what follows
	written map[string][]leasehold.Token
}

func (s *store) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	pass, _ := fence.PassOf(r.Header)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[r.URL.Path] = append(s.written[r.URL.Path], pass.Token)
}

// A holder is stopped past its TTL while another waits, and goes on when that one has
// written: the guarded store never sees tokens out of order, and the one who was stopped
// finds that it lost its lease.
func TestStoppedHoldersAreLate(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	leases := httptest.NewServer(door.MustHost(e, door.HostConfig{}, native.Kind))
	defer leases.Close()
	kept := &store{written: map[string][]leasehold.Token{}}
	guarded := httptest.NewServer(fence.Handler(fence.NewMemory(), func(r *http.Request) string {
		return strings.TrimPrefix(r.URL.Path, "/")
	}, kept))
	defer guarded.Close()
	c, err := client.Dial(t.Context(), client.Config{Servers: []string{leases.URL}, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()

	var wg sync.WaitGroup
	room := make(chan struct{}, 4)
	for n := range rounds {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			stopOne(t, c, leases.URL, guarded.URL, fmt.Sprint("r", n))
		})
	}
	wg.Wait()
	orders := 0
	for resource, tokens := range kept.written {
		for i := range tokens[1:] {
			if tokens[i] > tokens[i+1] {
				t.Errorf("%s: %d was written after %d", resource, tokens[i+1], tokens[i])
			}
		}
		if tokens[0] < tokens[len(tokens)-1] {
			orders++
		}
	}
	if orders != rounds {
		t.Errorf("only %d of %d resources had two holders", orders, rounds)
	}
}

// stopOne is one round.
func stopOne(t *testing.T, c *client.Client, leases, guarded, resource string) {
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), "LEASEHOLD_SERVER="+leases, "PAUSE_TEST_STORE="+guarded, "PAUSE_TEST_RESOURCE="+resource)
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	lines := bufio.NewScanner(out)
	if !says(lines, "writes") {
		t.Errorf("%s: the holder does not write", resource)
	}
	waited := make(chan *client.Hold, 1)
	go func() {
		h, err := c.Acquire(t.Context(), resource)
		if err != nil {
			t.Error(err)
		}
		waited <- h
	}()
	signal(t, holder, syscall.SIGSTOP)
	next := <-waited
	if next == nil {
		return
	}
	status, err := write(t.Context(), guarded, resource, next.Pass())
	if err != nil || status != http.StatusOK {
		t.Errorf("%s: the new holder's write is answered with %d, %v", resource, status, err)
	}
	signal(t, holder, syscall.SIGCONT)
	if !says(lines, "refused 412 valid false cause") {
		t.Errorf("%s: the late holder was not refused, or believes in its lease: %s", resource, lines.Text())
	}
	if err := holder.Wait(); err != nil {
		t.Errorf("%s: %v", resource, err)
	}
	if err := next.Release(t.Context()); err != nil && !errors.Is(err, client.ErrLost) {
		t.Errorf("%s: %v", resource, err)
	}
}

func signal(t *testing.T, p *exec.Cmd, s syscall.Signal) {
	if err := p.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// says reads up to a line that begins with a text.
func says(lines *bufio.Scanner, text string) bool {
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), text) {
			return true
		}
		if strings.HasPrefix(lines.Text(), "error:") || strings.HasPrefix(lines.Text(), "refused") {
			return false
		}
	}
	return false
}
