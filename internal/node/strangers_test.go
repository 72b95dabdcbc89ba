package node

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Strangers of all ports share one budget of memory: where those of RESP have taken their part, those of etcd's port
// and of the gateway find none, and are told so. Who is known goes on at both, and all is given back in the end.
func TestStrangersOfAllPortsShareMemory(t *testing.T) {
	w := newWorld(t, map[string]string{"etcd-listen": "127.0.0.1:0"})
	w.change(&core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{w.token("ann")},
		Bindings: []*access.Binding{bind("ann", "admin", access.AllNamespaces, "")}}})
	m := regexp.MustCompile(`etcd clients are served.*address=(\S+)`).FindStringSubmatch(w.log.String())
	if m == nil {
		t.Fatalf("no port for etcd:\n%s", w.log)
	}
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	known := &http.Client{Transport: transport}
	post := func(by *http.Client, url, token, body string) (int, string) {
		t.Helper()
		r, _ := http.NewRequest("POST", url, strings.NewReader(body))
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := by.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		said, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(said)
	}
	shared, etcd := strings.TrimPrefix(w.base, "http://"), "http://"+m[1]
	put := fmt.Sprintf(`{"key":"YQ==","value":"%s"}`, strings.Repeat("YWFh", 10<<10))
	if code, said := post(known, etcd+"/v3/kv/put", w.tokens["ann"], `{"key":"YQ=="}`); code != 200 {
		t.Fatalf("%d %s", code, said)
	}
	resp := dialed(t, shared)
	fmt.Fprintf(resp, "*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n", len(w.tokens["ann"]), w.tokens["ann"])
	echoed(t, resp, "+OK\r\n")

	refused := make(chan string, 1000)
	var strangers []net.Conn
	for full := false; !full; {
		c := dialed(t, shared)
		strangers = append(strangers, c)
		go func() {
			var said [200]byte
			n, _ := c.Read(said[:])
			refused <- string(said[:n])
		}()
		_, _ = io.WriteString(c, "*2\r\n$4\r\nAUTH\r\n$1000000\r\n"+strings.Repeat("x", 999_000)) // or it was refused
		select {
		case said := <-refused:
			if full = true; !strings.HasPrefix(said, "-ERR LIMITED clients that have not logged in") {
				t.Fatalf("a stranger is told %q", said)
			}
		default:
		}
		if len(strangers) > 500 {
			t.Fatal("500 strangers have found room")
		}
	}

	login := fmt.Sprintf(`{"name":"ann","password":"%s"}`, strings.Repeat("x", 30<<10))
	own := &http.Transport{Protocols: transport.Protocols}
	defer own.CloseIdleConnections()
	for url, by := range map[string]*http.Client{w.base: w.client, etcd: {Transport: own}} {
		code, said := post(by, url+"/v3/auth/authenticate", "", login)
		// The stranger that was refused gives back what it had so far: others take that, a little each.
		for range 200 {
			if strings.Contains(said, "clients that have not shown who they are") {
				break
			}
			c := dialed(t, shared)
			strangers = append(strangers, c)
			_, _ = io.WriteString(c, "*2\r\n$4\r\nAUTH\r\n$1000000\r\n"+strings.Repeat("x", 20_000))
			code, said = post(by, url+"/v3/auth/authenticate", "", login)
		}
		if code < 400 || !strings.Contains(said, "clients that have not shown who they are") {
			t.Errorf("a stranger at %s is told %d %s", url, code, said)
		}
	}
	if code, said := post(known, etcd+"/v3/kv/put", w.tokens["ann"], put); code != 200 {
		t.Errorf("who is known at etcd's port is told %d %s", code, said)
	}
	large := strings.Repeat("y", 500<<10)
	go fmt.Fprintf(resp, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(large), large)
	echoed(t, resp, fmt.Sprintf("$%d\r\n%s\r\n", len(large), large))

	for _, c := range strangers {
		_ = c.Close()
	}
	for end := time.Now().Add(time.Minute); w.shared.Now() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are taken after all have left", w.shared.Now())
		}
	}
	code, said := post(w.client, w.base+"/v3/auth/authenticate", "", login)
	if strings.Contains(said, "clients that have not shown") {
		t.Errorf("a stranger is told %d %s after all others have left", code, said)
	}
}

func dialed(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echoed reads an answer.
func echoed(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Errorf("%.100q is answered, %v", got, err)
	}
}
