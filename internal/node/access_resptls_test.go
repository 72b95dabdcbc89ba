package node

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/resp"
)

// keyrings makes an authority, the settings of a server with a certificate of it, and the configurations of clients.
func keyrings(t *testing.T, clients ...string) (flags map[string]string, configs map[string]*tls.Config) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, pair certificate.Pair, err error) {
		t.Helper()
		must(err)
		must(pair.Write(file(name+".crt"), file(name+".key"), false))
	}
	request := func(name string) certificate.Request {
		return certificate.Request{Name: name, Hosts: []string{"127.0.0.1"}, Lasts: time.Hour, Now: time.Now()}
	}
	pair, err := certificate.NewAuthority(request("ca"))
	write("ca", pair, err)
	ca, err := certificate.OpenAuthority(file("ca.crt"), file("ca.key"))
	must(err)
	pair, err = ca.Server(request("n1"))
	write("server", pair, err)
	configs = map[string]*tls.Config{}
	for _, name := range clients {
		pair, err = ca.Client(request(name))
		write(name, pair, err)
		ring, err := certificate.Open(certificate.Files{Cert: file(name + ".crt"), Key: file(name + ".key"), CA: file("ca.crt")}, nil)
		must(err)
		configs[name] = ring.Dial()
	}
	return map[string]string{"tls-cert": file("server.crt"), "tls-key": file("server.key"), "tls-client-ca": file("ca.crt")}, configs
}

// One port with TLS serves HTTP and RESP, and a certificate proves the same over both.
func TestCertificatesOverRESP(t *testing.T) {
	flags, configs := keyrings(t, "ann", "eve")
	w := newWorld(t, flags)
	address := strings.TrimPrefix(w.base, "http://")
	w.change(&core.ChangeAccess{Put: access.Items{
		Tokens:       []*access.Token{w.token("root"), w.token("ann")},
		Certificates: []*access.Certificate{{Name: "machines", SAN: "dns:ann"}},
		Bindings: []*access.Binding{bind("root", "admin", access.AllNamespaces, ""),
			bind("cert:ann", "member", leasehold.DefaultNamespace, "a/"), bind("ann", "member", leasehold.DefaultNamespace, "b/")},
	}})
	speak := func(name string, protocols ...string) *speaker {
		t.Helper()
		config := configs[name].Clone()
		config.NextProtos, config.ServerName = protocols, "127.0.0.1"
		conn, err := tls.Dial("tcp", address, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		s := &speaker{w, conn, resp.NewReader(conn)}
		s.do("HELLO", "3")
		s.do("LH.HELLO", "ERRORS", "json")
		return s
	}
	expect := func(got reply, status int, text string) {
		t.Helper()
		if got.status != status || !strings.Contains(got.body, text) {
			t.Errorf("answered %s", got.all())
		}
	}
	for _, protocols := range [][]string{nil, {"leasehold-resp"}} {
		ann := speak("ann", protocols...)
		expect(ann.do("LH.ACCESS", "WHOAMI"), 200, `"cert:ann"`)
		expect(ann.do("LH.ACQUIRE", "a/x", "HOLDER", "ann", "ID", "one", "TTL", "1h"), 200, `"one"`)
		expect(ann.do("LH.ACQUIRE", "b/x", "HOLDER", "ann"), 403, "cert:ann may not")
		expect(ann.do("AUTH", w.tokens["ann"]), 200, "OK")
		expect(ann.do("LH.ACQUIRE", "a/y", "HOLDER", "ann"), 403, "ann may not")
		expect(ann.do("LH.ACQUIRE", "b/x", "HOLDER", "ann", "ID", "two", "TTL", "1h"), 200, `"two"`)
		eve := speak("eve", protocols...) // of the same authority, and no rule is for it
		expect(eve.do("LH.GET", "a/x"), 401, "")
		expect(eve.do("AUTH", w.tokens["root"]), 200, "OK")
		expect(eve.do("LH.GET", "a/x"), 200, `"a/x"`)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: configs["ann"].Clone()}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + address + "/v1/access/whoami")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := readUntil(response.Body, ""); !strings.Contains(body, `"cert:ann"`) {
		t.Errorf("by HTTP it is %s", body)
	}
	wait, watch := speak("ann"), speak("ann")
	expect(watch.do("LH.WATCH", "PREFIX", "a/", "TAG", "t"), 200, "position")
	w.do("root", &core.Break{Namespace: leasehold.DefaultNamespace, ID: "one", By: "root", Reason: "r"})
	w.do("root", &core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: "a/x", ID: "held", Holder: "root", TTL: time.Hour})
	wait.send("LH.ACQUIRE", "a/x", "HOLDER", "ann", "WAIT", "1h", "ID", "waits")
	w.change(&core.ChangeAccess{Remove: access.Keys{Certificates: []string{"machines"}}})
	expect(wait.next(), 401, "")
	for got := watch.next(); !strings.Contains(got.body, "lh.end"); got = watch.next() {
	}
	expect(watch.do("LH.GET", "a/x"), 401, "")
}
