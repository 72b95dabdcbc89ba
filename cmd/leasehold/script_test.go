package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/mcp"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/door/terraform"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/internal/testsignal"
)

func TestMain(m *testing.M) {
	// These tests wait for leases to end and processes to start, and need little of the
	// machine: more of them run at once than there are cores. -parallel says otherwise.
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, 2*runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	if strings.HasSuffix(os.Args[0], ".test") { // and not as one of the commands below
		testsignal.Heed()
	}
	testscript.Main(m, map[string]func(){"leasehold": func() { os.Exit(execute()) }, "liketerraform": likeTerraform,
		"curl": likeCurl})
}

// TestStories runs each script in testdata against a server of its own.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			s, err := startServer()
			if err != nil {
				return err
			}
			env.Values["server"] = s
			env.Defer(func() {
				if err := s.close(); err != nil {
					env.T().Log("the state contradicts itself: ", err)
					env.T().FailNow()
				}
			})
			env.Setenv("LEASEHOLD_SERVER", "http://"+s.address)
			docs, err := filepath.Abs("../../docs")
			if err != nil {
				return err
			}
			env.Setenv("DOCS", docs) // for walks that do what a page says
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each process takes a second to end
			return nil
		},
		Cmds: words,
	})
}

// words are what scripts say beside testscript's own.
var words = map[string]func(*testscript.TestScript, bool, []string){
	"ok": ok, "exits": exits, "eventually": eventually, "until": until, "json": jsonAt, "jsonlines": jsonLines,
	"server": serverCommand, "session": session, "use": use,
}

// A testServer is a real server on loopback that forgets everything at the end of
// its script. Its door can be closed and opened while its engine goes on.
type testServer struct {
	engine  *memory.Engine
	front   engine.Engine // what the door sees of it
	address string
	stop    func()
}

func startServer() (*testServer, error) {
	return startBehind(func(e *memory.Engine) engine.Engine { return e })
}

// startBehind starts a server whose engine has something in front of it.
func startBehind(front func(*memory.Engine) engine.Engine) (*testServer, error) {
	s := &testServer{engine: memory.Start(engine.NewGoClock()), address: "127.0.0.1:0"}
	s.front = front(s.engine)
	return s, s.open()
}

func (s *testServer) open() error {
	l, err := net.Listen("tcp", s.address)
	for end := time.Now().Add(patienceOfScripts); err != nil &&
		time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		// Somebody's connection had the luck to begin at the port that was just left.
		l, err = net.Listen("tcp", s.address)
	}
	if err != nil {
		return err
	}
	s.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = door.MustHost(s.front, door.HostConfig{}, native.Kind, terraform.Kind, mcp.Kind).Serve(ctx, l)
	}()
	s.stop = func() {
		cancel()
		<-ended
	}
	return nil
}

// close also says what is wrong with the state that the story left behind.
func (s *testServer) close() error {
	s.stop()
	return errors.Join(s.engine.Check(), s.engine.Close())
}

// server stop|start: closes the door, or opens it at the same address
func serverCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value("server").(*testServer)
	switch {
	case len(args) == 1 && args[0] == "stop":
		s.stop()
	case len(args) == 1 && args[0] == "start":
		ts.Check(s.open())
	default:
		ts.Fatalf("usage: server stop|start")
	}
}

// ok leasehold ARG...: it ends well. The program is run within the test, which is
// fast and lets the race detector see it; "exec leasehold" starts a process, for
// what has to do with files, signals and terminals.
func ok(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, append([]string{"0"}, args...))
}

// exits CODE leasehold ARG...: it ends with exactly that code. With exec before the
// program, it is a process.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE [exec] PROGRAM ARG...")
	}
	code := 0
	switch args[1] {
	case "leasehold":
		code = within(ts, ts.Stdout(), ts.Stderr(), args[2:])
	case "exec":
		err := ts.Exec(args[2], args[3:]...)
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			ts.Check(err)
			break
		}
		code = ended.ExitCode()
	default:
		ts.Fatalf("exits: write exec before %s", args[1])
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("it ended with code %d, want %s", code, args[0])
	}
}

// within runs the program in this process, with the environment of the script.
func within(ts *testscript.TestScript, stdout, stderr io.Writer, args []string) int {
	a := newProgram()
	a.Stdin, a.Stdout, a.Stderr, a.Environ = strings.NewReader(""), stdout, stderr, nil
	for _, name := range []string{"LEASEHOLD_SERVER", "LEASEHOLD_NAMESPACE", "LEASEHOLD_HOLDER", "LEASEHOLD_DATA",
		"LEASEHOLD_LISTN", "LEASEHOLD_CA", "LEASEHOLD_CERT", "LEASEHOLD_KEY", "LEASEHOLD_TOKEN", "LEASEHOLD_TOKEN_FILE",
		"LEASEHOLD_CONTEXT", "HOME", "XDG_CONFIG_HOME"} {
		a.Environ = append(a.Environ, name+"="+ts.Getenv(name))
	}
	return a.execute(args)
}

// patienceOfScripts is how long a script waits for what should happen soon.
const patienceOfScripts = 20 * time.Second

// eventually PATTERN leasehold ARG...: it prints the pattern, now or soon.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	pattern := regexp.MustCompile("(?m)" + args[0])
	poll(ts, func() (string, bool) {
		var out, talk strings.Builder
		code := within(ts, &out, &talk, args[2:])
		return out.String() + talk.String(), code == 0 && pattern.MatchString(out.String()) != neg
	})
}

// until FILE PATTERN: the file has the pattern, now or soon.
func until(ts *testscript.TestScript, neg bool, args []string) {
	pattern := regexp.MustCompile("(?m)" + args[1])
	poll(ts, func() (string, bool) {
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		return string(text), pattern.Match(text) != neg
	})
}

func poll(ts *testscript.TestScript, try func() (string, bool)) {
	for end := time.Now().Add(patienceOfScripts); ; time.Sleep(20 * time.Millisecond) {
		seen, ok := try()
		if ok {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("it did not happen; last seen:\n%s", seen)
		}
	}
}

// session ID [TTL]: opens a session, for which there is no command yet.
func session(ts *testscript.TestScript, neg bool, args []string) {
	caller, err := v1.NewCaller(v1.CallerConfig{Server: ts.Getenv("LEASEHOLD_SERVER")})
	ts.Check(err)
	r := v1.SessionRequest{ID: args[0]}
	if len(args) > 1 {
		ttl, err := time.ParseDuration(args[1])
		ts.Check(err)
		r.TTL.Duration = v1.Duration(ttl)
	}
	_, err = caller.OpenSession(context.Background(), r)
	ts.Check(err)
	caller.CloseIdle()
}

// use FILE: from now on, commands talk to the server whose greeting is in the file.
func use(ts *testscript.TestScript, neg bool, args []string) {
	greeting := regexp.MustCompile(`https?://127\.0\.0\.1:\d+`)
	poll(ts, func() (string, bool) {
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		url := greeting.Find(text)
		ts.Setenv("LEASEHOLD_SERVER", string(url))
		return string(text), url != nil
	})
}

// json FILE PATH [WANT]: the file is one JSON value; at the path, such as
// 0.holder, it has what is wanted: a string, or JSON.
func jsonAt(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: json FILE PATH [WANT]")
	}
	var value any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &value); err != nil {
		ts.Fatalf("%s is not JSON: %v", args[0], err)
	}
	got, err := walk(value, args[1])
	ts.Check(err)
	if len(args) == 3 && (got == args[2]) == neg {
		ts.Fatalf("%s has %s, want %s", args[1], got, args[2])
	}
}

func walk(value any, path string) (string, error) {
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[step]
			if !ok {
				return "", fmt.Errorf("there is no %q", step)
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return "", fmt.Errorf("there is no element %s of %d", step, len(v))
			}
			value = v[i]
		default:
			return "", fmt.Errorf("there is nothing below %v", v)
		}
	}
	if s, ok := value.(string); ok {
		return s, nil
	}
	b, err := json.Marshal(value)
	return string(b), err
}

// jsonLines FILE: each line is a JSON object.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("%q is not an object: %v", line, err)
		}
	}
}
