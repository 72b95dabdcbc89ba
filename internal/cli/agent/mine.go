package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
)

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// A registration says that an agent is here, so that its hooks find it: they are started by the same program as its
// mcp is, and are its younger relatives.
type registration struct {
	Agent     string   `json:"agent"`
	Servers   []string `json:"servers"`
	Namespace string   `json:"namespace,omitempty"`
	Parent    int      `json:"parent"` // the agent's program
	PID       int      `json:"pid"`    // of its mcp
}

// here is the directory of all registrations.
const here = "here"

// register leaves a file for the agent's hooks. It goes when the agent does; one that was left behind is dropped by the
// next who looks.
func (b *bridge) register() error {
	dir, err := stateDir(b.app.Getenv)
	if err != nil {
		return err
	}
	r := registration{Agent: b.name, Servers: b.place.client.Servers, Namespace: b.place.client.Namespace,
		Parent: os.Getppid(), PID: os.Getpid()}
	text, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(dir.File(here), 0o700)
	}
	if err != nil {
		return err
	}
	b.registered = filepath.Join(dir.File(here), strconv.Itoa(r.PID)+".json")
	return os.WriteFile(b.registered, text, 0o600)
}

// relatives returns the registrations of agents whose program started this process, directly or not. A shell, or
// whatever else runs hooks, may be in between.
func relatives(dir state) (found []registration) {
	files, _ := filepath.Glob(filepath.Join(dir.File(here), "*.json"))
	ancestors := ancestry(os.Getppid())
	for _, file := range files {
		var r registration
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &r) != nil {
			continue
		}
		if !alive(r.PID) {
			_ = os.Remove(file)
			continue
		}
		if slices.Contains(ancestors, r.Parent) {
			found = append(found, r)
		}
	}
	return found
}

// ancestry returns a process and those that it comes from, but not the first of all.
func ancestry(pid int) (line []int) {
	const most = 64
	for ; pid > 1 && len(line) < most; pid = parentOf(pid) {
		line = append(line, pid)
	}
	return line
}

// parentOf returns which process started another; 0 if nobody can tell.
func parentOf(pid int) int {
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return parentIn(string(text))
	}
	text, err := exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0
	}
	parent, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return parent
}

// parentIn reads the parent from what Linux says of a process. Its name, in parentheses, may be anything.
func parentIn(stat string) int {
	after := stat[strings.LastIndexByte(stat, ')')+1:]
	fields := strings.Fields(after)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// RenewMine renews what the agent holds whose program runs this command, as a hook after each of its steps. It finds
// the agent by its name, or by its relationship to it; where there is none, there is nothing to renew.
func RenewMine(ctx context.Context, a *cli.App, cmd *cobra.Command) error {
	client, err := a.ClientSettings(cmd)
	if err != nil {
		return err
	}
	dir, err := stateDir(a.Getenv)
	if err != nil {
		return cli.Failure(leasehold.Unavailable, "%v", err)
	}
	var agents []registration
	if name := client.Holder; name != "" {
		r := registration{Agent: name, Servers: client.Servers, Namespace: client.Namespace}
		if url, ok := dir.Server(ctx); ok && !a.ServerNamed(cmd) {
			r.Servers = []string{url}
		}
		agents = append(agents, r)
	} else {
		agents = relatives(dir)
	}
	if len(agents) == 0 {
		a.Say("no agent runs this command, so there is nothing of its own to renew")
	}
	for _, r := range agents {
		own := client
		own.Servers, own.Namespace = r.Servers, r.Namespace
		if err := renewOf(ctx, a, &place{client: own}, r.Agent); err != nil {
			return cli.Failure(leasehold.Unavailable, "the leases of %s were not renewed: %v", r.Agent, err)
		}
		a.Say("renewed: what %s holds", r.Agent)
	}
	return nil
}

// renewOf makes a call in an agent's name. Any call renews what it holds, and a list keeps no ticket that it forgot.
func renewOf(ctx context.Context, a *cli.App, p *place, name string) error {
	b := newBridge(a, p, name)
	if err := b.connect(ctx); err != nil {
		return err
	}
	defer b.current().Close()
	_, err := b.current().CallTool(ctx, &sdk.CallToolParams{Name: "lease_list",
		Arguments: map[string]any{"holder": name}})
	return err
}
