package native

import (
	"crypto/tls"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// change changes who may do what, as a server does.
func (h *house) change(c *core.ChangeAccess) {
	h.t.Helper()
	if _, err := h.engine.Do(engine.WithAsker(h.t.Context(), &access.System), c); err != nil {
		h.t.Fatal(err)
	}
}

// speakTLS opens a connection that speaks RESP3 in TLS.
func (h *house) speakTLS(config *tls.Config, protocols ...string) *respClient {
	h.t.Helper()
	config = config.Clone()
	config.NextProtos, config.ServerName = protocols, "pipe"
	c := newRESPClient(h.t, tls.Client(h.raw(""), config))
	c.fields("HELLO", "3")
	return c
}

// begun are the three things that go on over RESP: a watch, a wait, and a wait that is pushed.
func (h *house) begun(speak func() *respClient) []*respClient {
	h.t.Helper()
	h.change(&core.ChangeAccess{Put: access.Items{
		Tokens:   []*access.Token{{ID: "holder", Hash: strings.Repeat("v", 32), Principal: "vic"}},
		Bindings: []*access.Binding{{Name: "holder", Role: "member", Principal: "vic", Namespace: "default"}}}})
	vic := engine.WithAsker(h.t.Context(), &access.Asker{Principal: "vic", Token: "holder"})
	if _, err := h.engine.Do(vic, &core.Acquire{Namespace: "default", Resource: "a/x", ID: "first", Holder: "vic", TTL: 24 * time.Hour}); err != nil {
		h.t.Fatal(err)
	}
	watch, wait, pushed := speak(), speak(), speak()
	watch.fields("LH.WATCH", "PREFIX", "a/", "TAG", "w")
	if got := pushed.fields("LH.ACQUIRE", "a/x", "HOLDER", "ann", "WAIT", "10h", "ID", "p", "PUSH", "t"); got["waiting"] != true {
		h.t.Fatalf("it does not wait: %v", got)
	}
	wait.send("LH.ACQUIRE", "a/x", "HOLDER", "ann", "WAIT", "10h", "ID", "b")
	synctest.Wait()
	return []*respClient{watch, wait, pushed}
}

// ends fails unless all that was begun is told to end within a second.
func (h *house) ends(began time.Time, all []*respClient, code string) {
	h.t.Helper()
	for i, c := range all {
		text := ""
		for text == "" {
			switch v := plainOf(c.next()).(type) {
			case string:
				text = v
			case []any:
				if last, ok := v[len(v)-1].(string); ok {
					text = last
				}
			}
		}
		if took := time.Since(began); took > time.Second || !strings.HasPrefix(text, "-"+code) {
			h.t.Errorf("%s ends after %v with %s", []string{"the watch", "the wait", "the pushed wait"}[i], took, text)
		}
	}
}

// What goes on over RESP ends within a second when the right to it does.
func TestRESPRevocation(t *testing.T) {
	for name, c := range map[string]struct {
		change core.ChangeAccess
		code   string
	}{
		"token":   {core.ChangeAccess{Remove: access.Keys{Tokens: []string{"ann1"}}}, "NOAUTH"},
		"binding": {core.ChangeAccess{Remove: access.Keys{Bindings: []string{"a"}}}, "DENIED"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, Config{})
				defer h.close()
				_, member := govern(t, h.engine)
				all := h.begun(func() *respClient {
					c := h.speak()
					if got := plainOf(c.do("AUTH", member)); got != "OK" {
						t.Fatal(got)
					}
					return c
				})
				time.Sleep(time.Second)
				began := time.Now()
				h.change(&c.change)
				h.ends(began, all, c.code)
				for _, one := range all {
					one.fails(c.code, "", "LH.GET", "a/x")
					one.conn.Close()
				}
			})
		})
	}
}

// A certificate is enough over RESP too, whether the protocol was chosen by TLS or by its first byte, until the rule for it is gone.
func TestRESPLoginByCertificate(t *testing.T) {
	for name, protocols := range map[string][]string{"by ALPN": {"leasehold-resp"}, "by its first byte": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := certified(t)
				h := build(t, Config{TLS: server.Listen()})
				defer h.close()
				admin, _ := govern(t, h.engine)
				c := h.speakTLS(client.Dial(), protocols...)
				defer c.conn.Close()
				c.fields("LH.ACQUIRE", "a/own", "HOLDER", "ann", "ID", "one")
				c.fails("DENIED", "cert:ann may not", "LH.ACQUIRE", "b/x", "HOLDER", "ann")
				who := func(principal, credential string) {
					t.Helper()
					if got := c.fields("LH.ACCESS", "WHOAMI"); got["principal"] != principal || got["credential"] != credential {
						t.Errorf("the server takes it for %v", got)
					}
				}
				who("cert:ann", "certificate")
				c.do("AUTH", admin) // what is said counts more than what was shown
				who("root", "token")
				c.do("RESET")
				c.fields("HELLO", "3")
				who("cert:ann", "certificate")

				bare := client.Dial()
				bare.Certificates, bare.GetClientCertificate, bare.ServerName = nil, nil, "pipe"
				nobody := tls.Client(h.raw(""), bare)
				_, err := nobody.Write([]byte("*1\r\n$4\r\nPING\r\n"))
				if err == nil {
					_, err = nobody.Read(make([]byte, 1))
				}
				if err == nil {
					t.Error("somebody without a certificate is answered")
				}
				nobody.Close()

				all := h.begun(func() *respClient { return h.speakTLS(client.Dial(), protocols...) })
				began := time.Now()
				h.change(&core.ChangeAccess{Remove: access.Keys{Certificates: []string{"machines"}}})
				h.ends(began, all, "NOAUTH")
				for _, one := range all {
					one.fails("NOAUTH", "", "LH.RENEW", "b")
					if got := plainOf(one.do("AUTH", admin)); got != "OK" {
						t.Errorf("a token is answered %v", got)
					}
					one.fields("LH.GET", "a/own")
					one.conn.Close()
				}
			})
		})
	}
}
