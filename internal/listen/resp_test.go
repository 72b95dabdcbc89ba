package listen

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/resp/server"
)

// RESP, HTTP/1.1 and HTTP/2 share a port, plain and with TLS, also where clients have
// certificates: each of them sees who it is.
func TestRESPBesideHTTP(t *testing.T) {
	who := func(state *tls.ConnectionState) string {
		if state == nil || len(state.VerifiedChains) == 0 {
			return "nobody"
		}
		return state.PeerCertificates[0].SerialNumber.String()
	}
	seen := make(chan string, 1)
	door := server.New(server.Config{Greeted: Greeted, Open: func(c *server.Conn) error {
		seen <- who(tlsOf(c.Net()))
		return nil
	}})
	protocol := &Protocol{Name: "resp", ALPN: server.ALPN, Matches: server.Matches, Serve: door.Serve, Refuse: door.Refuse}
	ping := func(c io.ReadWriter) string {
		answer := make([]byte, 7)
		if _, err := io.WriteString(c, "*1\r\n$4\r\nPING\r\n"); err != nil {
			return err.Error()
		}
		_, err := io.ReadFull(c, answer)
		if err != nil {
			return err.Error()
		}
		return <-seen + " " + string(bytes.TrimSpace(answer))
	}

	plain := build(t, Config{Protocols: []*Protocol{protocol}, Linger: time.Millisecond})
	if got := tell(t, plain.dial(), "*1\r\n$4\r\nPING\r\n"); got != "-LOADING "+StartingMessage {
		t.Errorf("while it starts: %q", got)
	}
	plain.state.Open()
	if got := ping(plain.dial()); got != "nobody +PONG" {
		t.Errorf("plain: %s", got)
	}
	if got := plain.get("http://"+plain.address+"/", plain2, nil); got != "200 HTTP/2.0 tls=false" {
		t.Errorf("plain HTTP/2: %s", got)
	}

	config := selfSigned(t)
	root, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	config.ClientCAs = x509.NewCertPool()
	config.ClientCAs.AddCert(root)
	known := &tls.Config{InsecureSkipVerify: true, Certificates: config.Certificates}
	for _, auth := range []tls.ClientAuthType{tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert} {
		config := config.Clone()
		config.ClientAuth = auth
		secure := build(t, Config{TLS: config, Protocols: []*Protocol{protocol}, Linger: time.Millisecond})
		secure.state.Open()
		for _, offered := range [][]string{{server.ALPN}, nil, {server.ALPN, "http/1.1"}} {
			mine := known.Clone()
			mine.NextProtos = offered
			if got := ping(tls.Client(secure.dial(), mine)); got != "1 +PONG" {
				t.Errorf("%v, ALPN %q, with a certificate: %s", auth, offered, got)
			}
		}
		for version, protocols := range map[string]*http.Protocols{"HTTP/1.1": http1, "HTTP/2.0": http2} {
			if got := secure.get("https://"+secure.address+"/", protocols, known.Clone()); got != "200 "+version+" tls=true" {
				t.Errorf("%v, %s: %s", auth, version, got)
			}
		}
		if auth == tls.VerifyClientCertIfGiven {
			if got := ping(tls.Client(secure.dial(), trusting.Clone())); got != "nobody +PONG" {
				t.Errorf("without a certificate: %s", got)
			}
		}
	}
}
