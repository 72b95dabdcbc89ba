package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/cluster"
	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/listen"
)

// A world is a whole server with a policy, and people who come to its ports over real connections.
type world struct {
	testing.TB
	engine *spied
	shared *limit.Budget // memory of strangers
	dir    string        // its data
	base   string        // of the client port
	azure  string        // of the port for Azure's clients, with the account
	consul string        // of the port for those of Consul
	client *http.Client
	log    *log
	tokens map[string]string // the secrets of people, by name
	stop   func()            // ends the server, and waits for it

	spoken   []*spoken // the commands of RESP, by which all is asked that has one; nil: by HTTP
	speakers map[string]*speaker
	sent     map[string]bool // commands of RESP
}

// spied is an engine that knows which kinds of commands it was given.
type spied struct {
	*cluster.Engine
	mu    sync.Mutex
	kinds map[string]bool
}

func (s *spied) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	s.mu.Lock()
	s.kinds[reflect.TypeOf(c).Elem().Name()] = true
	s.mu.Unlock()
	return s.Engine.Do(ctx, c)
}

// Submit does commands one after the other.
func (s *spied) Submit(batch []engine.Submission) { engine.SubmitEach(s.Do, batch) }

// account is the one that Azure's clients have.
const account = "team"

func newWorld(t testing.TB, given map[string]string) *world {
	t.Helper()
	flags := azureSettings(t)
	flags["consul-listen"], flags["mcp-break"] = "127.0.0.1:0", "true"
	maps.Copy(flags, given)
	c := settings(t.(*testing.T), flags)
	w := &world{TB: t, dir: c.Data, log: &log{}, tokens: map[string]string{}}
	c.Log = w.log
	s, err := newServer(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	config, err := s.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- listen.Serve(ctx, s.ports) }()
	e, err := cluster.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); e.Level() < core.NewestLevel; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server stays at level %d", e.Level())
		}
	}
	w.engine = &spied{Engine: e, kinds: map[string]bool{}}
	s.metrics.CountBy(e.Read)
	s.backend.Open(w.engine)
	w.shared = s.backend.Strangers()
	w.base = "http://" + s.listener.Addr().String()
	m := regexp.MustCompile(`azure clients are served.*address=(\S+)`).FindStringSubmatch(w.log.String())
	if m == nil {
		t.Fatalf("no port for Azure:\n%s", w.log)
	}
	w.azure = "https://" + m[1] + "/" + account
	if m = regexp.MustCompile(`consul clients are served.*address=(\S+)`).FindStringSubmatch(w.log.String()); m == nil {
		t.Fatalf("no port for Consul:\n%s", w.log)
	}
	w.consul = "http://" + m[1]
	w.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 100,
	}}
	w.stop = sync.OnceFunc(func() {
		w.client.CloseIdleConnections()
		stop()
		if err := errors.Join(<-served, e.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// azureSettings are those of a port for Azure's clients, with one account.
func azureSettings(t testing.TB) map[string]string {
	t.Helper()
	file := func(name string) string { return filepath.Join(t.TempDir(), name) }
	flags := map[string]string{"azure-listen": "127.0.0.1:0", "azure-cert": file("crt"), "azure-key": file("key"),
		"azure-accounts": file("accounts"), "azure-secret-file": file("secret")}
	r := certificate.Request{Name: "ca", Hosts: []string{"127.0.0.1"}, Lasts: time.Hour, Now: time.Now()}
	ca, key := file("ca.crt"), file("ca.key")
	book, err := azureaccount.Open(flags["azure-accounts"], flags["azure-secret-file"])
	if err == nil {
		_, err = book.Create(account, time.Now())
	}
	var pair certificate.Pair
	if err == nil {
		pair, err = certificate.NewAuthority(certificate.Request{Name: "ca", Lasts: time.Hour, Now: time.Now()})
	}
	if err == nil {
		err = pair.Write(ca, key, false)
	}
	var authority *certificate.Authority
	if err == nil {
		authority, err = certificate.OpenAuthority(ca, key)
	}
	if err == nil {
		pair, err = authority.Server(r)
	}
	if err == nil {
		err = pair.Write(flags["azure-cert"], flags["azure-key"], false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return flags
}

// token makes one for somebody.
func (w *world) token(name string) *access.Token {
	secret, hash := credential.NewToken()
	w.tokens[name] = secret
	return &access.Token{ID: "t-" + name, Hash: hash, Principal: name}
}

func bind(name, role, namespace, prefix string) *access.Binding {
	return &access.Binding{Name: name + "-" + role + "-" + namespace + "-" + prefix, Role: role, Principal: name,
		Namespace: namespace, Prefix: prefix}
}

// change changes the policy as a server does.
func (w *world) change(c *core.ChangeAccess) {
	w.Helper()
	if _, err := w.engine.Do(engine.WithAsker(context.Background(), &access.System), c); err != nil {
		w.Fatal(err)
	}
}

// do has somebody carry out a command, behind the doors: to prepare what others find.
func (w *world) do(who string, c core.Command) core.Answer {
	w.Helper()
	ctx := engine.WithAsker(context.Background(), &access.Asker{Principal: who, Token: "t-" + who})
	answer, err := w.engine.Engine.Do(ctx, c)
	if err != nil {
		w.Fatalf("%s: %+v: %v", who, c, err)
	}
	return answer
}

// A request is what somebody sends.
type request struct {
	method, path, body string // a path that begins with azure: or consul: goes to that port
	headers            []string
	within             time.Duration // how long to read an answer that does not end
	until              string        // or up to where
}

// A reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
}

// ask sends a request as somebody; nobody without a name.
func (w *world) ask(who string, r request) reply {
	w.Helper()
	if w.spoken != nil {
		if got, ok := w.say(who, r); ok {
			return got
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if r.within > 0 {
		time.AfterFunc(r.within, cancel)
	}
	url, isAzure := strings.CutPrefix(r.path, "azure:")
	url, isConsul := strings.CutPrefix(url, "consul:")
	switch {
	case isAzure:
		url = w.azure + url
	case isConsul:
		url = w.consul + url
	default:
		url = w.base + url
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, url, strings.NewReader(r.body))
	if err != nil {
		w.Fatal(err)
	}
	if who != "" {
		sent.Header.Set("Authorization", "Bearer "+w.tokens[who])
	}
	if isAzure {
		sent.Header.Set("X-Ms-Version", "2021-12-02")
	}
	for i := 0; i+1 < len(r.headers); i += 2 {
		sent.Header.Set(r.headers[i], r.headers[i+1])
	}
	response, err := w.client.Do(sent)
	if err != nil && r.within > 0 && ctx.Err() != nil {
		return reply{header: http.Header{}}
	}
	if err != nil {
		w.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	defer response.Body.Close()
	body, _ := readUntil(response.Body, r.until)
	if strings.HasPrefix(r.path, "/v3/") {
		body = plainEtcd(body)
	}
	got := reply{response.StatusCode, response.Header, body}
	if strings.HasPrefix(r.path, "/mcp") {
		got = got.ofTool()
	}
	return got
}

// readUntil reads all, or up to some text.
func readUntil(from io.Reader, text string) (string, error) {
	var got strings.Builder
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		got.Write(piece[:n])
		if err != nil || text != "" && strings.Contains(got.String(), text) {
			return got.String(), err
		}
	}
}

// code is how a reply names what it is.
func (r reply) code() string {
	var problem struct{ Code string }
	_ = json.Unmarshal([]byte(r.body), &problem)
	return cmp.Or(problem.Code, r.header.Get("X-Ms-Error-Code"), fmt.Sprint(r.status))
}

// all is everything that a reply says, whatever the time is.
func (r reply) all() string {
	h := r.header.Clone()
	h.Del("Date")
	return fmt.Sprint(r.status, " ", h, "\n", r.body)
}
