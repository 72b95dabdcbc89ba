package v1

import (
	"context"
	"io"
	"time"
)

// A Cluster is the servers that are one, as one of them sees it.
type Cluster struct {
	Cluster string `json:"cluster"`          // names it: no two have the same
	Self    string `json:"self"`             // the name of who answers
	Leader  string `json:"leader,omitempty"` // empty: nobody knows
	Term    uint64 `json:"term"`
	// Confirmed reports whether a majority has just confirmed that there is a leader: commands are
	// decided, whatever this server knows of single ones.
	Confirmed bool `json:"confirmed"`
	// Differ names the servers whose state was another than that of the majority when they
	// were last compared; without a majority, all that were not alike.
	Differ []string `json:"differ,omitempty"`

	Level uint64 `json:"level"`                // of the rules by which it decides
	Next  uint64 `json:"next_level,omitempty"` // the level that all servers know, if that is a newer one

	Servers []Server `json:"servers"` // in the order of their ids
}

// A Server is one of a cluster.
type Server struct {
	ID      uint64 `json:"id"` // never given to another
	Name    string `json:"name"`
	Peer    string `json:"peer"`             // where the other servers reach it
	Client  string `json:"client,omitempty"` // the URL at which clients do, as it says itself
	Voter   bool   `json:"voter"`            // its vote counts; else it is still catching up
	Version string `json:"version,omitempty"`

	OldestLevel uint64 `json:"oldest_level,omitempty"` // the levels that its program knows
	NewestLevel uint64 `json:"newest_level,omitempty"`

	Reachable bool   `json:"reachable"`           // it answered, or was heard of within the last seconds
	Answered  bool   `json:"answered"`            // it answered the server that was asked, just now
	HeardBy   string `json:"heard_by,omitempty"`  // who heard of it last, of all who answered
	HeardMS   *int64 `json:"heard_ms,omitempty"`  // how long ago that was
	Applied   uint64 `json:"applied,omitempty"`   // how far in the log it has come, as it said last
	SilentMS  *int64 `json:"silent_ms,omitempty"` // how long the leader has not heard of it, if anybody knows
	LowRoom   bool   `json:"low_room,omitempty"`  // its disk is nearly full; if it is not reachable, as it last said
}

// A ServerRequest names a server to take in.
type ServerRequest struct {
	Name string `json:"name"`
	Peer string `json:"peer"` // host:port, where the other servers reach it
}

// A TransferRequest says who is to lead; empty: whoever is best, but for who leads now.
type TransferRequest struct {
	To string `json:"to,omitempty"`
}

// A Lead says who leads.
type Lead struct {
	Leader string `json:"leader"`
}

// Sums are hashes of all servers' states at one place of the log. They are the same
// wherever all is well.
type Sums struct {
	Index uint64 `json:"index"`
	Same  bool   `json:"same"` // all that answered have the same
	Items []Sum  `json:"items"`
}

// A Sum is the hash of one server's state.
type Sum struct {
	ID    uint64 `json:"id"`
	Name  string `json:"name"`
	Hash  string `json:"hash,omitempty"`  // empty: it did not answer
	Error string `json:"error,omitempty"` // and why
}

// Cluster shows the servers and how they do.
func (c *Caller) Cluster(ctx context.Context) (Cluster, error) {
	return send[Cluster](ctx, c, request{method: "GET", path: "/v1/cluster", global: true})
}

// AddServer takes a server in. It has no vote until it has caught up. Adding what is there
// already, at the same address, changes nothing.
func (c *Caller) AddServer(ctx context.Context, r ServerRequest) (Server, error) {
	return send[Server](ctx, c, request{method: "POST", path: "/v1/cluster/members", body: r, global: true, idempotent: true})
}

// PromoteServer gives a server its vote.
func (c *Caller) PromoteServer(ctx context.Context, name string) error {
	_, err := send[Nothing](ctx, c, request{method: "POST", path: "/v1/cluster/members/" + escape(name) + "/promote", global: true})
	return err
}

// RemoveServer ends a membership for good.
func (c *Caller) RemoveServer(ctx context.Context, name string) error {
	_, err := send[Nothing](ctx, c, request{method: "DELETE", path: "/v1/cluster/members/" + escape(name), global: true})
	return err
}

// TransferLead gives the lead to a server, and tells who leads then.
func (c *Caller) TransferLead(ctx context.Context, r TransferRequest) (Lead, error) {
	return send[Lead](ctx, c, request{method: "POST", path: "/v1/cluster/transfer", body: r, global: true})
}

// A Level says by which rules a cluster decides.
type Level struct {
	Level uint64 `json:"level"`
}

// UpgradeCluster raises the level of the cluster to the newest that all servers know.
func (c *Caller) UpgradeCluster(ctx context.Context) (Level, error) {
	return send[Level](ctx, c, request{method: "POST", path: "/v1/cluster/upgrade", global: true, idempotent: true})
}

// CheckCluster compares the states of all servers.
func (c *Caller) CheckCluster(ctx context.Context) (Sums, error) {
	return send[Sums](ctx, c, request{method: "GET", path: "/v1/cluster/check", global: true, wait: time.Minute})
}

// Backup returns the whole state, in the form that restore takes. Reading it ends with
// io.EOF only if all of it came: an answer that was cut short ends with another error.
func (c *Caller) Backup(ctx context.Context) (io.ReadCloser, error) {
	response, err := c.open(ctx, request{method: "GET", path: "/v1/cluster/backup", global: true})
	if err != nil {
		return nil, err
	}
	return &lines{response.Body, addressOf(response)}, nil
}
