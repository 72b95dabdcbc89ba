package main

import (
	"context"
	"fmt"
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
	var away []answer
	for _, server := range c.client.Servers {
		one := config.Client{Server: server, Servers: []string{server}, TLS: c.client.TLS, Namespace: c.client.Namespace}
		alone, err := newConn(one, c.cmd)
		if err == nil {
			_, err = alone.Version(ctx)
			alone.CloseIdle()
		}
		if err != nil {
			away = append(away, answer{server, err})
		}
	}
	d.add(judgeServers(c.client.Servers, away))
}

// An answer is why a server that was named does not do.
type answer struct {
	server string
	err    error
}

func judgeServers(all []string, away []answer) finding {
	f := fine("servers", "%d of %d answer", len(all)-len(away), len(all)).with("named", float64(len(all))).with("away", float64(len(away)))
	if len(away) == 0 {
		return f
	}
	f.Detail += ": not"
	for i, a := range away {
		// Most errors name the server, and end with what to do, which stands below.
		why := strings.TrimPrefix(a.err.Error(), "cannot reach the server at "+a.server+": ")
		why = strings.TrimPrefix(why, "the server at "+a.server+" ")
		why, _, _ = strings.Cut(why, ": is it running?")
		f.Detail += fmt.Sprintf("%s %s (%s)", strings.Repeat(",", min(i, 1)), a.server, why)
	}
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
	case found.stuck:
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
