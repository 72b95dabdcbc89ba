package main

import (
	"context"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/config"
)

// lookAtServers looks at each server that was named, where there are several: commands
// would go on to the next one, and nobody would notice that one is away.
func (d *diagnosis) lookAtServers(ctx context.Context, c *conn) {
	if len(c.client.Servers) < 2 {
		return
	}
	var away []string
	for _, server := range c.client.Servers {
		one := config.Client{Server: server, Servers: []string{server}, TLS: c.client.TLS, Namespace: c.client.Namespace}
		alone, err := newConn(one, c.cmd)
		if err == nil {
			_, err = alone.Version(ctx)
			alone.CloseIdle()
		}
		if err != nil {
			away = append(away, server)
		}
	}
	d.add(judgeServers(c.client.Servers, away))
}

func judgeServers(all, away []string) finding {
	f := fine("servers", "%d of %d answer", len(all)-len(away), len(all)).with("named", float64(len(all))).with("away", float64(len(away)))
	if len(away) == 0 {
		return f
	}
	f.Detail += ": not " + strings.Join(away, ", ")
	return f.warn("commands go on to the next one; start those again, or take them out of --server and LEASEHOLD_SERVER")
}

// lookAtCluster looks at how the servers do, if they are a cluster.
func (d *diagnosis) lookAtCluster(ctx context.Context, c *conn) {
	cluster, err := c.Cluster(ctx)
	switch codeOf(err) {
	case leasehold.Refused, leasehold.NotFound:
		return // it is none, or is too old to know what one is
	}
	if err != nil {
		d.add(fine("cluster", "%v", err).warn("see how they do: " + c.again("cluster", "status")))
		return
	}
	d.add(judgeAsDoctor(c, cluster))
}

func judgeAsDoctor(c *conn, cluster v1.Cluster) finding {
	found := judgeCluster(cluster)
	f := fine("cluster", "%s", found.state).with("servers", float64(len(cluster.Servers)))
	var advice []string
	for _, line := range found.wrong {
		advice = append(advice, line(c))
	}
	switch {
	case cluster.Leader == "":
		return f.fail(leasehold.Unavailable, strings.Join(advice, "; "))
	case len(advice) > 0:
		return f.warn(strings.Join(advice, "; "))
	}
	if urls := clientURLs(cluster); len(c.client.Servers) == 1 && len(urls) > 1 {
		f.Detail += "; only one of them is named here"
		return f.warn("name all, so that commands go on when one is away: LEASEHOLD_SERVER=" + strings.Join(urls, ","))
	}
	return f
}

func clientURLs(cluster v1.Cluster) (urls []string) {
	for _, s := range cluster.Servers {
		if s.Client != "" {
			urls = append(urls, s.Client)
		}
	}
	return urls
}
