package run

import (
	"context"
	"encoding/json"
	"os"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
)

// GuardName is the argument with which this program is nothing but the guard of another. It is no
// command of its own, since nobody should call it.
const GuardName = "__guard"

// Guard is the life of a guard: see child.Watch. If the process that it guards for is killed, it
// ends the session of that process when nothing is left of the command, so that others need not
// wait for the TTL. It never renews anything, so the TTL still ends what it cannot.
func Guard() { child.Watch(os.Stdin, abandon) }

// A legacy is what the guard has to know to end a session: where, as whom, and which. It comes
// through a pipe and neither in arguments nor in the environment, which others could read.
type legacy struct {
	Servers   []string      `json:"servers"`
	Namespace string        `json:"namespace"`
	CA        string        `json:"ca,omitempty"`
	Cert      string        `json:"cert,omitempty"`
	Key       string        `json:"key,omitempty"`
	TokenFile string        `json:"token_file,omitempty"`
	Token     string        `json:"token,omitempty"` // if there is no file
	Insecure  bool          `json:"insecure,omitempty"`
	Session   string        `json:"session"`
	TTL       time.Duration `json:"ttl"`
}

// bequeath tells the guard which session to end if this process is killed.
func (e *job) bequeath(session string) {
	c := e.conn.Client
	will := legacy{Servers: c.Servers, Namespace: c.Namespace, CA: c.TLS.CA, Cert: c.TLS.Cert,
		Key: c.TLS.Key, Session: session, TTL: e.ttl.Value, TokenFile: c.TokenFile, Insecure: c.Insecure}
	if c.Token != nil && c.TokenFile == "" {
		// If there is none, the session ends by its TTL.
		will.Token, _ = c.Token(context.Background())
	}
	text, err := json.Marshal(will)
	if err == nil {
		e.guard.Then(string(text))
	}
}

// abandon ends a session whose process was killed. It tries until a server has answered or the
// session must have ended by itself; nobody is there to be told about a failure.
func abandon(what string, within time.Duration) {
	var l legacy
	if json.Unmarshal([]byte(what), &l) != nil {
		return
	}
	if within == 0 {
		within = l.TTL
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	c, err := cli.NewConn(config.Client{Servers: l.Servers, Namespace: l.Namespace,
		TLS: certificate.Files{CA: l.CA, Cert: l.Cert, Key: l.Key}}, nil)
	if err != nil {
		return
	}
	servers, err := v1.NewServers(v1.CallerConfig{Servers: l.Servers, Namespace: l.Namespace, TLS: c.TLS,
		PingWithin: l.TTL, Token: l.token(), Insecure: l.Insecure})
	if err != nil {
		return
	}
	// A server that does not answer must leave time to ask another.
	_ = servers.Retry(ctx, max(l.TTL/10, time.Second), func(ctx context.Context, server *v1.Caller) error {
		return server.AbandonSession(ctx, l.Session)
	})
}

// token returns what proves who asks; nil: nothing did.
func (l *legacy) token() v1.TokenFunc {
	switch {
	case l.TokenFile != "":
		return v1.TokenFile(l.TokenFile)
	case l.Token != "":
		return func(context.Context) (string, error) { return l.Token, nil }
	}
	return nil
}
