package v1_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/resp"
)

// A scripted is a server that answers commands as a test says.
type scripted struct {
	answer func(command string) string // empty: the connection is cut

	mu       sync.Mutex // guards what follows
	commands []string
	conns    int
}

const (
	introduced = "%2\r\n$7\r\nversion\r\n$1\r\n1\r\n$5\r\nlevel\r\n:4\r\n"
	granted    = "%3\r\n$2\r\nid\r\n$1\r\na\r\n$5\r\ntoken\r\n:7\r\n$12\r\nremaining_ms\r\n:30000\r\n"
)

// usual answers greetings, and grants a lease.
func usual(command string) string {
	switch name, _, _ := strings.Cut(command, " "); name {
	case "HELLO":
		return "%0\r\n"
	case "LH.HELLO":
		return introduced
	case "LH.ACQUIRE", "LH.RENEW":
		return granted
	}
	return "+OK\r\n"
}

func serve(t *testing.T, answer func(command string) string) (*scripted, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := &scripted{answer: answer}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return s, "http://" + l.Addr().String()
}

func (s *scripted) serve(c net.Conn) {
	defer c.Close()
	s.mu.Lock()
	s.conns++
	s.mu.Unlock()
	var in resp.Input
	for {
		n, err := c.Read(in.Space())
		if in.Filled(n); err != nil {
			return
		}
		for {
			args, err := in.Next()
			if err != nil {
				return
			}
			if args == nil {
				break
			}
			command := string(bytes.Join(args, []byte(" ")))
			s.mu.Lock()
			s.commands = append(s.commands, command)
			s.mu.Unlock()
			text := s.answer(command)
			if text == "" {
				return
			}
			_, _ = io.WriteString(c, text)
		}
		in.Release()
	}
}

// saw returns the commands that begin with a word.
func (s *scripted) saw(name string) (seen []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commands {
		if strings.HasPrefix(c, name) {
			seen = append(seen, c)
		}
	}
	return seen
}

func callerOf(t *testing.T, config v1.CallerConfig) *v1.Caller {
	t.Helper()
	c, err := v1.NewCaller(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

var acquireA = v1.AcquireRequest{Resource: "r", Holder: "h", ID: "a", Session: "s"}

func TestACallOverRESP(t *testing.T) {
	s, url := serve(t, usual)
	c := callerOf(t, v1.CallerConfig{Server: url, Namespace: "blue", Wire: v1.WireRESP})
	lease, err := c.Acquire(t.Context(), acquireA, v1.WithKey("k"))
	if err != nil || lease.ID != "a" || lease.Token != 7 || *lease.RemainingMS != 30000 || c.Level() != 4 {
		t.Errorf("%+v, %v, level %d", lease, err, c.Level())
	}
	if err := c.Release(t.Context(), v1.ReleaseRequest{IDs: []string{"a", "b"}, Session: "s", Withdraw: true}); err != nil {
		t.Error(err)
	}
	want := []string{
		"HELLO 3", "LH.HELLO ERRORS json NAMESPACE blue", "CLIENT SETINFO LIB-NAME leasehold-go", "LH.ACQUIRE r HOLDER h ID a SESSION s KEY k",
		"LH.RELEASE a b SESSION s WITHDRAW",
	}
	if !slices.Equal(s.commands, want) {
		t.Errorf("sent was %q", s.commands)
	}
}

// Renewals and reads never wait behind commands: each kind has its connection.
func TestKindsOfRequestsHaveConnections(t *testing.T) {
	release := make(chan struct{})
	s, url := serve(t, func(command string) string {
		if strings.HasPrefix(command, "LH.ACQUIRE") {
			<-release
		}
		if strings.HasPrefix(command, "LH.GET") {
			return "%1\r\n$8\r\nresource\r\n$1\r\nr\r\n"
		}
		return usual(command)
	})
	c := callerOf(t, v1.CallerConfig{Server: url, Wire: v1.WireRESP})
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { _, _ = c.Acquire(t.Context(), acquireA) })
	}
	if _, err := c.Renew(t.Context(), v1.RenewRequest{ID: "a"}); err != nil {
		t.Error(err)
	}
	if r, err := c.Resource(t.Context(), "r", 0); err != nil || r.Resource != "r" {
		t.Errorf("%+v, %v", r, err)
	}
	close(release)
	wg.Wait()
	if s.conns != 3 {
		t.Errorf("there were %d connections", s.conns)
	}
}

// A server that knows only HTTP is asked by HTTP, and each command once.
func TestAServerThatKnowsOnlyHTTP(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("secure ", secure), func(t *testing.T) {
			var posts, conns atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				_, _ = io.WriteString(w, `{"id":"a","token":7}`)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					conns.Add(1)
				}
			}
			config := v1.CallerConfig{Wire: v1.WireAuto}
			if server.EnableHTTP2 = secure; secure {
				server.StartTLS()
				config.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
			} else {
				server.Start()
			}
			defer server.Close()
			config.Server = server.URL
			c := callerOf(t, config)
			for range 5 {
				if lease, err := c.Acquire(t.Context(), acquireA); err != nil || lease.Token != 7 {
					t.Fatalf("%+v, %v", lease, err)
				}
			}
			if posts.Load() != 5 || conns.Load() != 2 {
				t.Errorf("%d requests over %d connections", posts.Load(), conns.Load())
			}
			config.Wire = v1.WireRESP
			if _, err := callerOf(t, config).Acquire(t.Context(), acquireA); !errors.Is(err, leasehold.ErrRefused) {
				t.Errorf("forced: %v", err)
			}
			if posts.Load() != 5 {
				t.Errorf("forced, %d requests", posts.Load())
			}
			c.CloseIdle()
		})
	}
}

func TestErrorsOverRESP(t *testing.T) {
	held := `-HELD {"code":"held","status":409,"detail":"r is held by b","holder":"b","resource":"r","token":6,"waiting":2}`
	for reply, check := range map[string]func(err error) bool{
		held: func(err error) bool {
			var e *leasehold.Error
			return errors.As(err, &e) && e.Code == leasehold.Held && e.Lease.Holder == "b" && e.Waiting == 2
		},
		"-LIMITED too many":     func(err error) bool { return errors.Is(err, leasehold.ErrLimited) },
		"-UNAVAILABLE starting": func(err error) bool { return errors.Is(err, leasehold.ErrUnavailable) },
		"-LOADING stopping":     func(err error) bool { return errors.Is(err, leasehold.ErrUnavailable) },
		"-NOAUTH who are you": func(err error) bool {
			return errors.Is(err, v1.ErrUnauthenticated) && errors.Is(err, leasehold.ErrDenied)
		},
		"-WHATEVER it is":           func(err error) bool { return errors.Is(err, leasehold.ErrRefused) },
		"+not a lease":              func(err error) bool { return errors.Is(err, leasehold.ErrUndecided) },
		"%1\r\n$2\r\nid\r\n$1\r\nb": func(err error) bool { return errors.Is(err, leasehold.ErrUndecided) },
	} {
		_, url := serve(t, func(command string) string {
			if strings.HasPrefix(command, "LH.ACQUIRE") {
				return reply + "\r\n"
			}
			return usual(command)
		})
		if _, err := callerOf(t, v1.CallerConfig{Server: url, Wire: v1.WireRESP}).Acquire(t.Context(), acquireA); !check(err) {
			t.Errorf("%s: %v", reply, err)
		}
	}
	_, err := v1.NewCaller(v1.CallerConfig{Wire: "carrier pigeon"})
	if !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("an unknown wire: %v", err)
	}
}

// A command whose reply is lost may have been carried out; one that never left was not.
func TestLostOverRESP(t *testing.T) {
	cut := func(command string) string {
		if strings.HasPrefix(command, "LH.HELLO") || strings.HasPrefix(command, "HELLO") ||
			strings.HasPrefix(command, "CLIENT") {
			return usual(command)
		}
		return ""
	}
	s, url := serve(t, cut)
	c := callerOf(t, v1.CallerConfig{Server: url, Wire: v1.WireRESP})
	if _, err := c.Acquire(t.Context(), acquireA); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("an acquire: %v", err)
	}
	if _, err := c.Resource(t.Context(), "r", 0); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("a read: %v", err)
	}
	if n := len(s.saw("LH.ACQUIRE")); n != 1 {
		t.Errorf("%d acquires were sent", n)
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	c = callerOf(t, v1.CallerConfig{Server: "http://" + gone.Addr().String(), Wire: v1.WireAuto})
	if _, err := c.Acquire(t.Context(), acquireA); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("nobody is there: %v", err)
	}
	// With another server, what can be repeated is, and nothing else.
	other, second := serve(t, usual)
	c = callerOf(t, v1.CallerConfig{Servers: []string{url, second}, Wire: v1.WireRESP})
	if lease, err := c.Acquire(t.Context(), acquireA); err != nil || lease.Token != 7 {
		t.Errorf("at the second: %+v, %v", lease, err)
	}
	c = callerOf(t, v1.CallerConfig{Servers: []string{url, second}, Wire: v1.WireRESP})
	if _, err := c.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "h"}); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("without an id: %v", err)
	}
	if n := len(other.saw("LH.ACQUIRE")); n != 1 {
		t.Errorf("the second got %d acquires", n)
	}
}

// A token that ended is replaced, and the command sent once more over a connection with the new one.
func TestTokensOverRESP(t *testing.T) {
	ended := false
	s, url := serve(t, func(command string) string {
		switch {
		case strings.HasPrefix(command, "HELLO") && !strings.Contains(command, "AUTH default two") && ended:
			return "-WRONGPASS no such token\r\n"
		case strings.HasPrefix(command, "LH.RENEW") && !ended:
			ended = true
			return "-NOAUTH the token has ended\r\n"
		}
		return usual(command)
	})
	token := "one"
	c := callerOf(t, v1.CallerConfig{Server: url, Wire: v1.WireRESP, Token: func(ctx context.Context) (string, error) {
		if v1.Rejected(ctx) == token {
			token = "two"
		}
		return token, nil
	}})
	if _, err := c.Renew(t.Context(), v1.RenewRequest{ID: "a"}); err != nil {
		t.Error(err)
	}
	if want := []string{"HELLO 3 AUTH default one", "HELLO 3 AUTH default two"}; !slices.Equal(s.saw("HELLO"), want) {
		t.Errorf("%q", s.saw("HELLO"))
	}
	far := callerOf(t, v1.CallerConfig{Server: "http://192.0.2.1", Wire: v1.WireAuto, Token: func(context.Context) (string, error) { return "x", nil }})
	if _, err := far.Renew(t.Context(), v1.RenewRequest{ID: "a"}); !errors.Is(err, leasehold.ErrRefused) {
		t.Errorf("a token without TLS: %v", err)
	}
}

// A grant that was waited for is pushed; commands go on meanwhile, and a wait that is given up leaves them alone.
func TestWaitsOverRESP(t *testing.T) {
	s, url := serve(t, func(command string) string {
		switch {
		case strings.HasSuffix(command, "gone") || !strings.Contains(command, "WAIT"):
		case strings.Contains(command, "ID a"):
			return "%2\r\n$2\r\nid\r\n$1\r\na\r\n$7\r\nwaiting\r\n#t\r\n"
		case strings.Contains(command, "ID b"):
			return "%1\r\n$7\r\nwaiting\r\n#t\r\n"
		}
		return usual(command)
	})
	c := callerOf(t, v1.CallerConfig{Server: url, Wire: v1.WireRESP})
	r := acquireA
	r.Wait = v1.Duration(time.Minute)
	short, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		wg.Go(func() {
			r := r
			r.ID = id
			_, err := c.Acquire(short, r)
			if !errors.Is(err, leasehold.ErrUndecided) || !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
		})
	}
	for len(s.saw("LH.ACQUIRE")) < 2 {
		time.Sleep(time.Millisecond)
	}
	if err := c.Release(t.Context(), v1.ReleaseRequest{ID: "x"}); err != nil {
		t.Error(err)
	}
	cancel()
	wg.Wait()
	if err := c.Release(t.Context(), v1.ReleaseRequest{ID: "x"}); err != nil || s.conns != 1 {
		t.Errorf("%v over %d connections", err, s.conns)
	}
}

func TestAPushedGrant(t *testing.T) {
	s, url := serve(t, func(command string) string {
		if _, tag, ok := strings.Cut(command, "PUSH "); ok {
			return fmt.Sprintf("%%1\r\n$7\r\nwaiting\r\n#t\r\n>3\r\n$10\r\nlh.acquire\r\n$%d\r\n%s\r\n%s", len(tag), tag, granted)
		}
		return usual(command)
	})
	c := callerOf(t, v1.CallerConfig{Server: url, Wire: v1.WireRESP})
	r := acquireA
	r.Wait = v1.Duration(time.Minute)
	if lease, err := c.Acquire(t.Context(), r); err != nil || lease.Token != 7 {
		t.Errorf("%+v, %v: %q", lease, err, s.commands)
	}
}

// A server of an older version that lacks a command gets it by HTTP.
func TestAnUnknownCommandGoesByHTTP(t *testing.T) {
	s, url := serve(t, func(command string) string {
		if strings.HasPrefix(command, "LH.RENEW") {
			return "-ERR unknown command 'LH.RENEW', with args beginning with: 'a' \r\n"
		}
		return usual(command)
	})
	c := callerOf(t, v1.CallerConfig{Server: url, Wire: v1.WireAuto})
	_, err := c.Renew(t.Context(), v1.RenewRequest{ID: "a"})
	if err == nil || len(s.saw("LH.RENEW")) != 1 {
		t.Errorf("%v after %q", err, s.commands)
	}
}
