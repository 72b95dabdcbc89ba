package doortest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// A toy is a small door over HTTP: POST /toy?holder=H&wait=D acquires, DELETE /toy?holder=H
// releases, and the answer is a code. With a mistake it breaks one promise.
type toy struct {
	backend *door.Backend
	mistake string
	account *telemetry.Verb

	mu   sync.Mutex
	mine map[string]bool // who acquired here, for the mistake of keeping that
}

func (d *toy) door() door.Door {
	return door.Door{HTTP: door.HTTP{
		Routes: []door.Route{{Pattern: "/toy", Handler: d}},
		Refuse: func(w http.ResponseWriter, r *http.Request, err error) {
			switch {
			case d.mistake == "says nothing of its state":
				err = engine.Unavailable("no")
			case d.mistake == "takes starting for absence":
				err = &leasehold.Error{Code: leasehold.NotFound, Message: "starting"}
			}
			d.answer(w, r, err)
		},
	}}
}

func (d *toy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("hang") != "" && d.mistake == "hangs" {
		door.Unhurried(w)
		<-r.Context().Done()
		return
	}
	proof, err := d.backend.Login(r, door.Bearer)
	if err != nil {
		d.answer(w, r, err)
		return
	}
	ctx := door.WithCaller(r.Context(), door.Caller{
		Origin: leasehold.Origin{Address: "1.2.3.4", Door: "toy"}, Proof: proof,
	})
	holder := r.URL.Query().Get("holder")
	if r.Method == http.MethodDelete {
		_, err := d.backend.Do(ctx, &core.Release{Namespace: "default", ID: holder})
		d.answer(w, r, err)
		return
	}
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	id := holder
	if wait > 0 {
		id = fmt.Sprint(holder, time.Now().UnixNano()) // nobody can ask for it again
	}
	d.answer(w, r, d.acquire(ctx, w, &core.Acquire{Namespace: "default", Resource: "toy", Holder: holder, ID: id, Wait: wait}))
}

func (d *toy) acquire(ctx context.Context, w http.ResponseWriter, command *core.Acquire) error {
	d.mu.Lock()
	if d.mistake == "keeps holders to itself" && len(d.mine) > 0 && !d.mine[command.ID] {
		d.mu.Unlock()
		return leasehold.ErrHeld
	} else if d.mistake == "keeps holders to itself" {
		d.mine[command.ID] = true
		d.mu.Unlock()
		return nil
	}
	d.mu.Unlock()
	if d.mistake == "makes an id of its own" {
		command.ID += fmt.Sprint(time.Now().UnixNano())
		time.Sleep(time.Millisecond)
	}
	if command.Wait == 0 {
		_, err := d.backend.Do(ctx, command)
		for d.mistake == "insists" && door.Unsure(err) && d.backend.Pause(ctx, time.Second) {
			_, err = d.backend.Do(ctx, command)
		}
		return err
	}
	leave, err := d.backend.Stay(ctx)
	if err != nil && d.mistake != "knows no limit" {
		return err
	}
	if err == nil && d.mistake != "leaks" {
		defer leave()
	}
	door.Unhurried(w)
	if d.mistake == "waits for nobody" {
		ctx = context.WithoutCancel(ctx)
	}
	if d.mistake != "waits while it drains" {
		var cancel context.CancelFunc
		ctx, cancel = d.backend.UntilStopping(ctx)
		defer cancel()
	}
	if d.mistake == "gives up" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
	}
	_, err = engine.Acquire(ctx, d.backend.Engine(), command, false)
	for d.mistake == "waits for a leader" && door.Unsure(err) && d.backend.Pause(ctx, time.Second) {
		_, err = engine.Acquire(ctx, d.backend.Engine(), command, false)
	}
	if d.backend.Stopping().Err() != nil {
		return engine.Unavailable(door.StoppingMessage)
	}
	return err
}

func (d *toy) answer(w http.ResponseWriter, r *http.Request, err error) {
	if d.mistake != "notes nothing" {
		d.backend.Denied(err, audit.Refusal{
			Origin: leasehold.Origin{Address: "1.2.3.4", Door: "toy"}, Namespace: "default", Verb: "acquire",
		})
	}
	if d.mistake != "counts nothing" {
		d.account.Done(r.Context(), telemetry.Outcome{Err: err})
	}
	if d.mistake == "takes no leader for held" && errors.Is(err, leasehold.ErrUnavailable) && d.backend.Stopping().Err() == nil {
		err = leasehold.ErrHeld
	}
	if d.mistake == "takes undecided for unavailable" && errors.Is(err, leasehold.ErrUndecided) {
		err = leasehold.ErrUnavailable
	}
	if err == nil {
		return
	}
	e := door.Coded(err)
	http.Error(w, e.Code.String()+" "+e.Message, door.StandingOf(e.Code).Status)
}

type toyClient struct{ *HTTP }

func (c toyClient) ask(ctx context.Context, method, query string, headers ...string) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://toy/toy?"+query, nil)
	if err != nil {
		return Answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return c.Ask(r)
}

func (c toyClient) Acquire(ctx context.Context, holder string, wait time.Duration) (Answer, error) {
	return c.ask(ctx, "POST", "holder="+holder+"&wait="+wait.String())
}

func (c toyClient) Release(ctx context.Context, holder string) (Answer, error) {
	return c.ask(ctx, "DELETE", "holder="+holder)
}

func (c toyClient) Intrude(ctx context.Context) (Answer, error) {
	return c.ask(ctx, "POST", "holder=eve", "Sec-Fetch-Site", "cross-site")
}

func newToy(mistake string) *Adapter {
	return &Adapter{
		Name: "toy", Resource: "toy", Waits: true, Undecided: leasehold.Undecided,
		Open: func(_ testing.TB, b *door.Backend) door.Door {
			d := &toy{backend: b, mistake: mistake, mine: map[string]bool{}, account: b.Requests("toy").Verb("acquire")}
			return d.door()
		},
		Dial: func(_ testing.TB, dial Dialer) Client {
			return toyClient{NewHTTP(dial, func(r *http.Response, body string) leasehold.Code {
				word, _, _ := strings.Cut(body, " ")
				for _, code := range leasehold.Codes {
					if code.String() == word {
						return code
					}
				}
				return 0
			})}
		},
		Bad: []string{"POST /toy?hang=1 HTTP/1.1\r\nHost: x\r\n\r\n"},
	}
}

// A door that keeps every promise passes.
func TestContract(t *testing.T) { Run(t, newToy("")) }

// Each promise that is broken is found by the check that is about it.
func TestMistakesAreFound(t *testing.T) {
	for check, mistakes := range map[string][]string{
		"starting":                   {"takes starting for absence", "says nothing of its state"},
		"draining":                   {"says nothing of its state"},
		"draining ends waits":        {"waits while it drains"},
		"any server":                 {"keeps holders to itself"},
		"no leader":                  {"takes no leader for held", "insists"},
		"no leader ends waits":       {"waits for a leader"},
		"undecided, and done":        {"makes an id of its own"},
		"undecided, and not done":    {"takes undecided for unavailable"},
		"limits":                     {"knows no limit", "leaks"},
		"bad bytes":                  {"hangs"},
		"waits":                      {"gives up", "leaks"},
		"a client that leaves":       {"waits for nobody"},
		"denied goes to the journal": {"notes nothing"},
		"metrics":                    {"counts nothing"},
	} {
		for _, mistake := range mistakes {
			t.Run(check+"/"+mistake, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					found := &finding{TB: t}
					done := make(chan bool)
					go func() {
						defer close(done)
						checkNamed(t, check).run(found, newToy(mistake))
					}()
					<-done
					if len(found.said) == 0 {
						t.Errorf("nobody found that it %s", mistake)
					}
				})
			})
		}
	}
	if len(checks) != 14 {
		t.Errorf("there are %d checks: plant a mistake for each", len(checks))
	}
}

func checkNamed(t *testing.T, name string) check {
	for _, c := range checks {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q", name)
	return check{}
}

// A finding is a test whose failures are what is wanted.
type finding struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (f *finding) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *finding) Error(args ...any) { f.Errorf("%s", fmt.Sprint(args...)) }

func (f *finding) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *finding) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }
