package native

import (
	"context"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/outlook"
	"github.com/leasehold/leasehold/internal/engine"
)

// How long a cluster may take for what it is asked: an election, and then some; and for a
// hash of everything that it has.
const (
	clusterTime = 20 * time.Second
	sumTime     = time.Minute
)

// withCluster calls ask with the cluster, if there is one.
func (c *call) withCluster(ask func(context.Context, engine.Cluster) error) error {
	return c.withClusterFor(clusterTime, ask)
}

func (c *call) withClusterFor(within time.Duration, ask func(context.Context, engine.Cluster) error) error {
	cluster := c.door.backend.Cluster()
	if cluster == nil {
		return &leasehold.Error{Code: leasehold.Refused,
			Message: "this server is not part of a cluster and cannot join one: " +
				"it keeps everything in memory; start one that can with: leasehold serve"}
	}
	c.stay()
	defer c.within(writeTime) // for what is said of an error
	ctx, cancel := context.WithTimeout(c.signed(), within)
	defer cancel()
	return ask(ctx, cluster)
}

// cluster shows the servers and how they do.
func (c *call) cluster() error {
	return c.withCluster(func(ctx context.Context, cluster engine.Cluster) error {
		o, err := cluster.Outlook(ctx)
		if err != nil {
			return err
		}
		return c.sendValue(outlook.Cluster(o))
	})
}

func (c *call) addServer(body *v1.ServerRequest) error {
	err := firstError(outlook.CheckServer(body.Name), outlook.CheckNewServer(body.Name), outlook.CheckPeer(body.Peer))
	if err != nil {
		return err
	}
	return c.withCluster(func(ctx context.Context, cluster engine.Cluster) error {
		server, err := cluster.Add(ctx, body.Name, body.Peer)
		if err != nil {
			return err
		}
		return c.sendValue(outlook.Server(server))
	})
}

func (c *call) promoteServer() error {
	return c.changeServer(engine.Cluster.Promote)
}

func (c *call) removeServer() error {
	return c.changeServer(engine.Cluster.Remove)
}

// changeServer does something to the server that the path names.
func (c *call) changeServer(change func(engine.Cluster, context.Context, string) error) error {
	name := c.path("name")
	if err := outlook.CheckServer(name); err != nil {
		return err
	}
	return c.withCluster(func(ctx context.Context, cluster engine.Cluster) error {
		if err := change(cluster, ctx, name); err != nil {
			return err
		}
		return c.sendValue(v1.Nothing{})
	})
}

func (c *call) transferLead(body *v1.TransferRequest) error {
	if body.To != "" {
		if err := outlook.CheckServer(body.To); err != nil {
			return err
		}
	}
	return c.withCluster(func(ctx context.Context, cluster engine.Cluster) error {
		leader, err := cluster.Transfer(ctx, body.To)
		if err != nil {
			return err
		}
		return c.sendValue(v1.Lead{Leader: leader})
	})
}

func (c *call) upgradeCluster() error {
	return c.withCluster(func(ctx context.Context, cluster engine.Cluster) error {
		level, err := cluster.Upgrade(ctx)
		if err != nil {
			return err
		}
		return c.sendValue(v1.Level{Level: uint64(level)})
	})
}

// checkCluster compares the states of all servers.
func (c *call) checkCluster() error {
	return c.withClusterFor(sumTime, func(ctx context.Context, cluster engine.Cluster) error {
		sums, err := cluster.Sums(ctx)
		if err != nil {
			return err
		}
		return c.sendValue(outlook.Sums(sums))
	})
}

// backup sends the whole state. Once it has begun it can only be finished or cut.
func (c *call) backup() error {
	cluster := c.door.backend.Cluster()
	if cluster == nil {
		return c.withCluster(nil)
	}
	leave, err := c.door.backend.StayAs(c.signed(), c.door.backend.Metrics().Exports)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := c.door.backend.Staying(c.signed(), c.proof)
	defer cancel()
	h := c.stream()
	h.stay()
	w := &slowWriter{httpWire: h}
	if err = cluster.Backup(ctx, w); err == nil {
		_, err = w.Write(nil) // an empty backup is an answer, too
	}
	if err != nil && w.begun {
		return errCut
	}
	h.within(writeTime)
	return err
}

// A slowWriter sends a large answer, of which each part has its time.
type slowWriter struct {
	*httpWire
	begun bool
}

func (w *slowWriter) Write(b []byte) (int, error) {
	if !w.begun {
		h := w.w.Header()
		h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = bytesType, noStore, noSniff
		w.begun = true
	}
	w.within(writeTime)
	defer w.written()
	return w.w.Write(b)
}

// limits shows how much there is in the cluster, and how much there may be.
func (c *call) limits() error {
	var allowed, used leasehold.Caps
	if err := c.door.backend.Read(c.ctx, func(v core.View) { allowed, used = v.Caps() }); err != nil {
		return err
	}
	return c.sendValue(v1.Limits{
		Leases:     v1.Limit{Used: used.Leases, Allowed: allowed.Leases},
		Sessions:   v1.Limit{Used: used.Sessions, Allowed: allowed.Sessions},
		Waiters:    v1.Limit{Used: used.Waiters, Allowed: allowed.Waiters},
		Namespaces: v1.Limit{Used: used.Namespaces, Allowed: allowed.Namespaces},
	})
}

func (c *call) setLimits(body *v1.LimitsRequest) error {
	if err := firstError(checkText("by", body.By), checkText("reason", body.Reason)); err != nil {
		return err
	}
	caps := leasehold.Caps{Leases: body.Leases, Sessions: body.Sessions, Waiters: body.Waiters,
		Namespaces: body.Namespaces}
	if _, err := c.do(&core.SetCaps{Caps: caps, By: body.By, Reason: body.Reason}); err != nil {
		return err
	}
	return c.limits()
}

// quarantine shows whether leases are granted yet after a restore.
func (c *call) quarantine() error {
	var out *v1.Quarantine
	if err := c.door.backend.Read(c.ctx, func(v core.View) { out = outlook.Quarantine(v.Quarantine()) }); err != nil {
		return err
	}
	if out == nil {
		out = &v1.Quarantine{}
	}
	return c.sendValue(out)
}

func (c *call) endQuarantine(body *v1.EndQuarantineRequest) error {
	if err := firstError(checkText("by", body.By), checkText("reason", body.Reason)); err != nil {
		return err
	}
	if _, err := c.do(&core.EndQuarantine{Base: body.TokensAbove, By: body.By, Reason: body.Reason}); err != nil {
		return err
	}
	return c.quarantine()
}
