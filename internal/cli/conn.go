package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/profile"
	"github.com/leasehold/leasehold/internal/storeapi"
	"github.com/leasehold/leasehold/store"
)

// Patience is how long a command waits for an answer, besides the time that it asked to wait.
const Patience = 15 * time.Second

// A Conn is one command's connection to the servers, with the settings it was made from.
type Conn struct {
	*v1.Caller
	Client config.Client
	TLS    *tls.Config // nil: what this machine trusts
	Cmd    *cobra.Command
	Store  bool // it asks another store than a server, which knows nothing but leases
}

// Talk makes the body of a command that asks a server something.
func (a *App) Talk(body func(ctx context.Context, c *Conn, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.Connect(cmd)
		if err != nil {
			return err
		}
		return c.Explain(body(cmd.Context(), c, args))
	}
}

// Connect reads the settings of a command and returns its connection. The server that was named is not asked yet.
func (a *App) Connect(cmd *cobra.Command) (*Conn, error) {
	client, err := a.ClientSettings(cmd)
	if err != nil {
		return nil, err
	}
	if !a.ServerNamed(cmd) {
		a.joinAgents(cmd.Context(), &client)
	}
	return NewConn(client, cmd)
}

// UsualAddress is where every command looks for a server that nobody named.
const UsualAddress = "127.0.0.1:4653"

// ServerNamed reports whether a flag, a variable or the person's context says which server to ask.
func (a *App) ServerNamed(cmd *cobra.Command) bool {
	src, err := a.ClientSources(cmd)
	return err != nil || src.Flags["server"] != "" || a.Getenv("LEASEHOLD_SERVER") != "" || src.Context["server"] != ""
}

// joinAgents lets a command ask the server that the person's agents share, if none is at the usual address. That
// server knows of no tokens, so none is sent to what is found at its address.
func (a *App) joinAgents(ctx context.Context, client *config.Client) {
	dir, err := profile.UserAgents(a.Getenv)
	if err != nil || dir.Published() == "" {
		return
	}
	if there, err := net.DialTimeout("tcp", UsualAddress, time.Second); err == nil {
		_ = there.Close()
		return
	}
	if url, ok := dir.Server(ctx); ok {
		client.Servers, client.Server, client.Token, client.LoginFlags = []string{url}, url, nil, nil
	}
}

// NewConn returns a connection to the servers that the settings name.
func NewConn(client config.Client, cmd *cobra.Command) (*Conn, error) {
	c := &Conn{Client: client, Cmd: cmd}
	if client.TLS != (certificate.Files{}) {
		ring, err := certificate.Open(client.TLS, nil)
		if err != nil {
			return nil, Usage("%v", err)
		}
		c.TLS = ring.Dial()
	}
	if len(client.Servers) == 1 && store.Names(client.Servers[0]) {
		return c, c.useStore(client.Servers[0])
	}
	caller, err := v1.NewCaller(v1.CallerConfig{Servers: client.Servers, Namespace: client.Namespace, Timeout: Patience,
		TLS: c.TLS, Token: client.Token, Insecure: client.Insecure})
	c.Caller = caller
	return c, err
}

// useStore makes the connection ask another store than a server. It is opened by the first request,
// and its connections end with the program.
func (c *Conn) useStore(address string) (err error) {
	c.Store = true
	namespace := cmp.Or(c.Client.Namespace, leasehold.DefaultNamespace)
	var mu sync.Mutex
	var opened store.Store
	api := storeapi.New(namespace, func(ctx context.Context) (_ store.Store, err error) {
		mu.Lock()
		defer mu.Unlock()
		if opened == nil {
			opened, err = store.Open(ctx, address, store.Settings{Namespace: namespace})
		}
		return opened, err
	})
	c.Caller, err = v1.NewCaller(v1.CallerConfig{
		Server: "http://store", Namespace: c.Client.Namespace, Timeout: Patience, Client: &http.Client{Transport: api},
	})
	return err
}

// ClientFlags are those of every command that talks to a server.
func (a *App) ClientFlags(cmd *cobra.Command) {
	a.ServerFlags(cmd)
	a.SettingFlag(cmd, "namespace", "N")
}

// ServerFlags are those by which a server is found and trusted.
func (a *App) ServerFlags(cmd *cobra.Command) {
	for _, name := range serverSettings {
		a.SettingFlag(cmd, name, "")
	}
	for _, name := range serverSettings[2:] {
		if err := cmd.MarkFlagFilename(name); err != nil {
			panic(err) // the flag was just made
		}
	}
	cmd.Flags().Bool("insecure", false, "send your token also to another machine without TLS, where others can read it")
}

// serverSettings are those by which a server is found, then the files of a connection.
var serverSettings = []string{"server", "context", "ca", "cert", "key", "token-file"}

// Everything returns all resources whose names begin with a prefix. The list is never nil, which
// JSON would show as null.
func (c *Conn) Everything(ctx context.Context, q v1.ResourceQuery) ([]v1.Resource, error) {
	found := []v1.Resource{}
	q.Limit = v1.MaxLimit
	for r, err := range c.Resources(ctx, q) {
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// Again returns a command for the same server and namespace as this one, for people to copy. Only
// flags are repeated: what comes from the environment will be there again. Passwords are left out,
// because output is often kept.
func (c *Conn) Again(words ...string) string {
	line := "leasehold"
	for _, word := range words {
		line += " " + Quote(word)
	}
	for _, name := range append([]string{"namespace"}, serverSettings...) {
		if f := c.Cmd.Flags().Lookup(name); f != nil && f.Changed {
			value := f.Value.String()
			if name == "server" {
				value = store.Redact(value)
			}
			line += " --" + name + " " + Quote(value)
		}
	}
	return line
}

// Explain adds what to try next, unless the command knew better.
func (c *Conn) Explain(err error) error {
	var (
		failure *leasehold.Error
		better  *Hinted
	)
	if errors.As(err, &better) || !errors.As(err, &failure) {
		return err
	}
	switch {
	case errors.Is(err, v1.ErrUnauthenticated) && c.Client.Token == nil:
		return Hint(err, "prove who you are: %s, or set LEASEHOLD_TOKEN_FILE", c.Again("login"))
	case errors.Is(err, v1.ErrUnauthenticated) && c.Client.LoginFlags != nil:
		return Hint(err, "log in again: %s", c.Again(append([]string{"login"}, c.Client.LoginFlags...)...))
	case errors.Is(err, v1.ErrUnauthenticated):
		return Hint(err, "your token is wrong, revoked or expired: ask an admin for another, then %s", c.replaceToken())
	}
	switch failure.Code {
	case leasehold.Denied:
		if unconnected := (*net.OpError)(nil); errors.As(err, &unconnected) {
			return err // about a certificate: whoami would not be answered either
		}
		return Hint(err, "see who you are and what you may do: %s", c.Again("access", "whoami"))
	case leasehold.NotFound:
		return Hint(err, "see what there is: %s", c.Again("list"))
	case leasehold.Undecided:
		return Hint(err, "see whether it happened: %s", c.Again("list", "-o", "wide"))
	}
	return err
}

// replaceToken says where another token has to go: a login is not used while a flag, a variable or the context names
// one.
func (c *Conn) replaceToken() string {
	switch {
	case c.Client.TokenVariable != "":
		return "set " + c.Client.TokenVariable
	case c.Client.TokenFile != "":
		return "write it to " + c.Client.TokenFile
	}
	return "run " + c.Again("login")
}

// Holder returns who runs the command, as others will see it. The number is that of the calling
// process, a shell or a script: this process will be gone before anybody could look it up.
func Holder() string {
	pid := os.Getppid()
	if pid <= 1 {
		pid = os.Getpid()
	}
	return fmt.Sprintf("%s:%d", Person(), pid)
}

// Person returns user@host.
func Person() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	} else if env := os.Getenv("USER"); env != "" {
		name = env
	}
	if h, err := os.Hostname(); err == nil {
		host, _, _ = strings.Cut(h, ".")
	}
	return name + "@" + host
}

// Operator returns the name under which somebody acts on leases that are not their own.
func (c *Conn) Operator() string {
	if c.Client.Holder != "" {
		return c.Client.Holder
	}
	return Person()
}

// Cluster returns the cluster as the server sees it that is asked. Before there was
// Answered, all who are reachable had answered; the one that is asked always does.
func (c *Conn) Cluster(ctx context.Context) (v1.Cluster, error) {
	cluster, err := c.Caller.Cluster(ctx)
	if !slices.ContainsFunc(cluster.Servers, func(s v1.Server) bool { return s.Answered }) {
		for i := range cluster.Servers {
			cluster.Servers[i].Answered = cluster.Servers[i].Reachable
		}
	}
	return cluster, err
}
