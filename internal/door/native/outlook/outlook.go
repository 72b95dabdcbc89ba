// Package outlook says in the API's types how the servers of a cluster do.
package outlook

import (
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// Cluster returns the servers and how they do.
func Cluster(o engine.Outlook) v1.Cluster {
	out := v1.Cluster{Cluster: o.Cluster, Term: o.Term, Confirmed: o.Confirmed, Differ: o.Differ,
		Level: uint64(o.Level), Quarantine: Quarantine(o.Quarantine, o.Quarantined), Servers: []v1.Server{}}
	if next := o.Next(); next > o.Level {
		out.Next = uint64(next)
	}
	names := map[uint64]string{}
	for _, s := range o.Servers {
		names[s.ID] = s.Name
	}
	for _, s := range o.Servers {
		if s.ID == o.Self {
			out.Self = s.Name
		}
		if s.ID == o.Leader {
			out.Leader = s.Name
		}
		server := Server(s)
		server.HeardBy = names[s.HeardBy]
		out.Servers = append(out.Servers, server)
	}
	return out
}

// Server returns one server.
func Server(s engine.Server) v1.Server {
	out := v1.Server{ID: s.ID, Name: s.Name, Peer: s.Peer, Client: s.Client, Voter: s.Voter, Version: s.Version,
		Reachable: s.Reachable, Answered: s.Answered,
		OldestLevel: uint64(s.Oldest), NewestLevel: uint64(s.Newest)}
	out.LowRoom, out.Starting = s.LowRoom, s.Starting
	if s.Reachable {
		out.Applied = s.Applied
	}
	if heard := s.Heard.Milliseconds(); s.Heard >= 0 && s.HeardBy != 0 {
		out.HeardMS = &heard
	}
	if silent := s.Silent.Milliseconds(); s.Silent >= 0 {
		out.SilentMS = &silent
	}
	return out
}

// Sums returns the hashes of all servers, and whether they are the same.
func Sums(sums engine.Sums) v1.Sums {
	out := v1.Sums{Index: sums.Index, Same: true, Items: []v1.Sum{}}
	var first string
	for _, s := range sums.Of {
		out.Items = append(out.Items, v1.Sum{ID: s.Server, Name: s.Name, Hash: s.Hash, Error: s.Err})
		if first == "" {
			first = s.Hash
		}
		out.Same = out.Same && (s.Hash == "" || s.Hash == first)
	}
	return out
}

// Quarantine returns nil if there is none.
func Quarantine(q core.Quarantine, active bool) *v1.Quarantine {
	if !active {
		return nil
	}
	left := v1.Duration(q.Left.Round(time.Millisecond))
	out := &v1.Quarantine{Active: true, Remaining: &left, Backup: &v1.Time{Time: q.Backup}, TokensAbove: q.Base}
	if !q.Ends.IsZero() {
		out.Ends = &v1.Time{Time: q.Ends}
	}
	return out
}
