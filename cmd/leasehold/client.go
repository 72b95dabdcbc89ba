package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/config"
)

// patience is how long a command waits for an answer, besides what it asked to
// wait for.
const patience = 15 * time.Second

// A conn is one command's line to the server.
type conn struct {
	*v1.Caller
	client config.Client
	tls    *tls.Config // nil: what this machine trusts
	cmd    *cobra.Command
}

// talks makes the body of a command that asks a server something.
func (a *app) talks(body func(ctx context.Context, c *conn, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(cmd)
		if err != nil {
			return err
		}
		return c.explain(body(cmd.Context(), c, args))
	}
}

func (a *app) connect(cmd *cobra.Command) (*conn, error) {
	settings, _, err := config.ForClient(a.sources(cmd))
	if err != nil {
		return nil, hint(usage("%v", err), "all settings: leasehold help configuration")
	}
	return newConn(settings.Client, cmd)
}

func newConn(client config.Client, cmd *cobra.Command) (*conn, error) {
	c := &conn{client: client, cmd: cmd}
	if client.TLS != (certificate.Files{}) {
		ring, err := certificate.Open(client.TLS, nil)
		if err != nil {
			return nil, usage("%v", err)
		}
		c.tls = ring.Dial()
	}
	caller, err := v1.NewCaller(v1.CallerConfig{Servers: client.Servers, Namespace: client.Namespace, Timeout: patience, TLS: c.tls})
	c.Caller = caller
	return c, err
}

// clientFlags are those of every command that talks to a server.
func (a *app) clientFlags(cmd *cobra.Command) {
	serverFlags(cmd)
	settingFlag(cmd, "namespace", "N")
}

// serverFlags are those by which a server is found and trusted.
func serverFlags(cmd *cobra.Command) {
	for _, name := range serverSettings {
		settingFlag(cmd, name, "")
	}
	for _, name := range serverSettings[1:] {
		if err := cmd.MarkFlagFilename(name); err != nil {
			panic(err) // the flag was just made
		}
	}
}

var serverSettings = []string{"server", "ca", "cert", "key"}

// everything is all resources whose name begins with a prefix; never nil, which
// would be no list in JSON.
func (c *conn) everything(ctx context.Context, prefix string, all bool) ([]v1.Resource, error) {
	found := []v1.Resource{}
	for r, err := range c.Resources(ctx, v1.ResourceQuery{Prefix: prefix, All: all, Limit: v1.MaxLimit}) {
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// again writes a command for the same server and namespace as this one, to be
// copied. What comes from the environment will be there again.
func (c *conn) again(words ...string) string {
	line := "leasehold"
	for _, word := range words {
		line += " " + quote(word)
	}
	for _, name := range append([]string{"namespace"}, serverSettings...) {
		if f := c.cmd.Flags().Lookup(name); f != nil && f.Changed {
			line += " --" + name + " " + quote(f.Value.String())
		}
	}
	return line
}

// explain adds what to try next, unless the command knew better.
func (c *conn) explain(err error) error {
	var (
		failure *leasehold.Error
		better  *hinted
	)
	if errors.As(err, &better) || !errors.As(err, &failure) {
		return err
	}
	switch failure.Code {
	case leasehold.NotFound:
		return hint(err, "see what there is: %s", c.again("list"))
	case leasehold.Undecided:
		return hint(err, "see what became of it: %s", c.again("list", "-o", "wide"))
	}
	return err
}

// holder is who runs the command, as others will see it. The number is that of the
// process that called it, a shell or a script: this one will be gone before
// anybody could look it up.
func holder() string {
	pid := os.Getppid()
	if pid <= 1 {
		pid = os.Getpid()
	}
	return fmt.Sprintf("%s:%d", person(), pid)
}

// person is user@host.
func person() string {
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

// operator is who acts on what is not its own.
func (c *conn) operator() string {
	if c.client.Holder != "" {
		return c.client.Holder
	}
	return person()
}

// Cluster returns the cluster as the server sees it that is asked. Before there was
// Answered, all who are reachable had answered; the one that is asked always does.
func (c *conn) Cluster(ctx context.Context) (v1.Cluster, error) {
	cluster, err := c.Caller.Cluster(ctx)
	if !slices.ContainsFunc(cluster.Servers, func(s v1.Server) bool { return s.Answered }) {
		for i := range cluster.Servers {
			cluster.Servers[i].Answered = cluster.Servers[i].Reachable
		}
	}
	return cluster, err
}
