package access

import (
	"context"
	"io"

	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// cluster is the servers. To see how they do is monitor's, to change them admin's.
type cluster struct {
	guard *Guard
	in    engine.Cluster
}

var _ engine.Cluster = cluster{}

// Cluster is the servers that the engine runs on; nil: it runs on no others and never will.
func (g *Guard) Cluster() engine.Cluster {
	if in, ok := g.engine.(engine.Cluster); ok {
		return cluster{g, in}
	}
	return nil
}

// Warnings returns what somebody should look at, to those who may monitor the cluster.
func (g *Guard) Warnings(ctx context.Context) []string {
	warner, ok := g.engine.(engine.Warner)
	if !ok || g.MayCluster(ctx, policy.Monitor) != nil {
		return nil
	}
	return warner.Warnings()
}

// Outlook tells those who may not monitor only what a client needs: whether there is a leader, and where the servers
// are.
func (c cluster) Outlook(ctx context.Context) (engine.Outlook, error) {
	permit, err := c.guard.Permit(ctx)
	if err != nil {
		return engine.Outlook{}, err
	}
	outlook, err := c.in.Outlook(ctx)
	if err != nil || permit.MayCluster(policy.Monitor) {
		return outlook, err
	}
	brief := engine.Outlook{Self: outlook.Self, Confirmed: outlook.Confirmed, Level: outlook.Level,
		Quarantine: outlook.Quarantine, Quarantined: outlook.Quarantined}
	for _, s := range outlook.Servers {
		brief.Servers = append(brief.Servers, engine.Server{ID: s.ID, Name: s.Name, Client: s.Client, Voter: s.Voter,
			Reachable: s.Reachable, Heard: -1, Silent: -1, Oldest: outlook.Level, Newest: outlook.Level})
	}
	return brief, nil
}

func (c cluster) admin(ctx context.Context) error { return c.guard.MayCluster(ctx, policy.Admin) }

// Add: admin.
func (c cluster) Add(ctx context.Context, name, address string) (engine.Server, error) {
	if err := c.admin(ctx); err != nil {
		return engine.Server{}, err
	}
	return c.in.Add(ctx, name, address)
}

// Promote: admin.
func (c cluster) Promote(ctx context.Context, name string) error {
	if err := c.admin(ctx); err != nil {
		return err
	}
	return c.in.Promote(ctx, name)
}

// Remove: admin.
func (c cluster) Remove(ctx context.Context, name string) error {
	if err := c.admin(ctx); err != nil {
		return err
	}
	return c.in.Remove(ctx, name)
}

// Transfer: admin.
func (c cluster) Transfer(ctx context.Context, name string) (string, error) {
	if err := c.admin(ctx); err != nil {
		return "", err
	}
	return c.in.Transfer(ctx, name)
}

// Upgrade: admin.
func (c cluster) Upgrade(ctx context.Context) (core.Level, error) {
	if err := c.admin(ctx); err != nil {
		return 0, err
	}
	return c.in.Upgrade(ctx)
}

// Sums: admin. They cost a hash of everything.
func (c cluster) Sums(ctx context.Context) (engine.Sums, error) {
	if err := c.admin(ctx); err != nil {
		return engine.Sums{}, err
	}
	return c.in.Sums(ctx)
}

// Backup: admin, until its end. It has everything.
func (c cluster) Backup(ctx context.Context, w io.Writer) error {
	if err := c.admin(ctx); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	c.guard.follow(following)
	return c.in.Backup(ctx, adminWriter{c, ctx, w})
}

type adminWriter struct {
	cluster cluster
	ctx     context.Context
	w       io.Writer
}

func (a adminWriter) Write(p []byte) (int, error) {
	permit, err := a.cluster.guard.fresh(a.ctx)
	switch {
	case err != nil:
		return 0, err
	case !permit.MayCluster(policy.Admin):
		return 0, denyCluster(permit, policy.Admin)
	}
	return a.w.Write(p)
}
