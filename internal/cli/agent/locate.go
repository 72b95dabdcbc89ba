package agent

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/profile"
)

// The files in the directory in which agents meet. Agents have a shared lock on clients for as long as they live; who
// starts a server has an exclusive one on start.
const (
	clientsFile = "clients"
	startFile   = "start"
	logFile     = "server.log"
)

// A state is the directory in which the agents of one user find each other.
type state struct{ profile.Agents }

// stateDir returns the directory of the user whose environment it is, and makes it if it is not there.
func stateDir(getenv func(string) string) (state, error) {
	dir, err := profile.UserAgents(getenv)
	if err != nil {
		return state{}, err
	}
	return state{dir}, os.MkdirAll(string(dir), 0o700)
}

// A place is a server that agents are joined to.
type place struct {
	client  config.Client
	dir     state    // zero: the server was named, and agents do not meet by themselves
	local   string   // where to start one
	present *os.File // with a lock that says that somebody is here; nil: none is needed
}

// url is how people are told where the server is.
func (p *place) url() string { return strings.Join(p.client.Servers, ",") }

// leave says that this agent needs the shared server no longer.
func (p *place) leave() {
	if p.present != nil {
		_ = p.present.Close()
	}
}

// locate finds the server of an agent, and starts it if there is none.
func locate(ctx context.Context, a *cli.App, cmd *cobra.Command, client config.Client, local string) (*place, error) {
	p := &place{client: client, local: local}
	if a.ServerNamed(cmd) {
		return p, nil
	}
	var err error
	if p.dir, err = stateDir(a.Getenv); err != nil {
		return nil, cli.Failure(leasehold.Unavailable, "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	// Before anything is looked at: a server that is about to end is waited for, and one that runs goes on.
	if p.present, err = lockFile(ctx, p.dir.File(clientsFile), shared); err == nil {
		err = p.find(ctx)
	}
	if err != nil {
		p.leave()
		err = cli.Failure(leasehold.Unavailable, "there is no server, and none could be started: %v", err)
		return nil, cli.Hint(err, "start one yourself: leasehold serve")
	}
	return p, nil
}

// startTime is how long an agent waits for a server that has to be started, or is about to end.
const startTime = 30 * time.Second

// find joins the server that is there, or starts one. Of several that come at once, one starts it and the others wait.
//
// The one that agents share is looked for first: if a person starts another at the usual address later, agents that
// come after that must still meet those that came before.
func (p *place) find(ctx context.Context) error {
	start, err := lockFile(ctx, p.dir.File(startFile), exclusive)
	if err != nil {
		return err
	}
	defer start.Close()
	if url, ok := p.dir.Server(ctx); ok {
		p.join(url)
		return nil
	}
	if usual := "http://" + p.local; !strings.HasSuffix(usual, ":0") && profile.Answers(ctx, usual) {
		p.client.Servers = []string{usual}
		return nil
	}
	return p.start(ctx)
}

// join makes the agent ask the server that agents share. That server knows of no tokens, so none is sent to what is
// found at its address: another program may have it by now.
func (p *place) join(url string) {
	p.client.Servers, p.client.Token, p.client.LoginFlags = []string{url}, nil, nil
}

// start starts a server that outlives this process, and waits until it answers.
func (p *place) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(p.dir.File(logFile))
	if err != nil {
		return err
	}
	defer log.Close()
	server := exec.Command(self, ServerName, freeAddress(p.local), idleTime.String())
	server.Stdout, server.Stderr, server.Dir = log, log, string(p.dir.Agents)
	detach(server)
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if url, ok := p.dir.Server(ctx); ok {
			p.join(url)
			return nil
		}
		select {
		case <-ticker.C:
		case <-ended:
			return errors.New("it ended at once: see " + p.dir.File(logFile))
		case <-ctx.Done():
			return errors.New("it does not answer: see " + p.dir.File(logFile))
		}
	}
}

// freeAddress returns an address that nobody listens on: the one that is wanted, or else any. If somebody takes it in
// between, the server fails to start, and says so.
func freeAddress(wanted string) string {
	l, err := net.Listen("tcp", wanted)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return wanted
}

// untilAlone ends a server when no agent has been there for a while. It keeps the lock that it has got then: an agent
// that comes now waits until this server is gone, and starts another.
func (d state) untilAlone(ctx context.Context, idle time.Duration, end func()) {
	var since time.Time
	ticker := time.NewTicker(min(idle/10, time.Minute) + time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		alone, err := tryLock(d.File(clientsFile), exclusive)
		switch {
		case err != nil || alone == nil:
			since = time.Time{}
			continue
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= idle:
			d.Withdraw()
			end()
			<-ctx.Done()
			return // the lock goes with the process
		}
		_ = alone.Close()
	}
}
