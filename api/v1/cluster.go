package v1

import (
	"context"
	"io"
	"time"
)

// A Cluster is a group of servers that keep one state, as one of them sees it.
type Cluster struct {
	Cluster string `json:"cluster"`          // its unique id
	Self    string `json:"self"`             // the name of the server that answers
	Leader  string `json:"leader,omitempty"` // empty: not known
	Term    uint64 `json:"term"`
	// Confirmed reports whether a majority has just confirmed the leader: then the cluster
	// carries out commands, whatever this server knows of the others.
	Confirmed bool `json:"confirmed"`
	// Differ names the servers whose state differed from the majority's when states were last
	// compared; without a majority, all that differed.
	Differ []string `json:"differ,omitempty"`

	Level uint64 `json:"level"`                // the active feature level
	Next  uint64 `json:"next_level,omitempty"` // a newer level that all servers know, if there is one

	Quarantine *Quarantine `json:"quarantine,omitempty"` // nothing is granted yet after a restore

	Servers []Server `json:"servers"` // ordered by id
}

// A Server is a member of a cluster.
type Server struct {
	ID      uint64 `json:"id"` // never reused
	Name    string `json:"name"`
	Peer    string `json:"peer"`             // where the other servers reach it
	Client  string `json:"client,omitempty"` // the URL for clients, as it says itself
	Voter   bool   `json:"voter"`            // it votes; else it is still catching up
	Version string `json:"version,omitempty"`

	OldestLevel uint64 `json:"oldest_level,omitempty"` // the feature levels that its program knows
	NewestLevel uint64 `json:"newest_level,omitempty"`

	Reachable bool   `json:"reachable"`           // it answered, or somebody heard from it within the last seconds
	Answered  bool   `json:"answered"`            // it just answered the server that was asked
	HeardBy   string `json:"heard_by,omitempty"`  // the server that heard from it last
	HeardMS   *int64 `json:"heard_ms,omitempty"`  // how long ago
	Applied   uint64 `json:"applied,omitempty"`   // the last log entry it applied, as it said last
	SilentMS  *int64 `json:"silent_ms,omitempty"` // how long the leader has not heard from it, if known
	LowRoom   bool   `json:"low_room,omitempty"`  // its disk is nearly full, as it said last
	Starting  bool   `json:"starting,omitempty"`  // it answered, and lets no clients in yet
}

// A ServerRequest adds a server to the cluster.
type ServerRequest struct {
	Name string `json:"name"`
	Peer string `json:"peer"` // host:port, where the other servers reach it
}

// A TransferRequest moves the lead to a server; empty: to the best other one.
type TransferRequest struct {
	To string `json:"to,omitempty"`
}

// A Lead names the leader.
type Lead struct {
	Leader string `json:"leader"`
}

// Sums are hashes of all servers' states at one log index. They must be equal.
type Sums struct {
	Index uint64 `json:"index"`
	Same  bool   `json:"same"` // all servers that answered have the same hash
	Items []Sum  `json:"items"`
}

// A Sum is the hash of one server's state.
type Sum struct {
	ID    uint64 `json:"id"`
	Name  string `json:"name"`
	Hash  string `json:"hash,omitempty"`  // empty: it did not answer
	Error string `json:"error,omitempty"` // why it did not answer
}

// Cluster returns the cluster's servers and their condition.
func (c *Caller) Cluster(ctx context.Context) (Cluster, error) {
	return send[Cluster](ctx, c, request{method: "GET", path: "/v1/cluster", global: true})
}

// AddServer adds a server to the cluster. It has no vote until it has caught up. It is
// idempotent for the same name and address.
func (c *Caller) AddServer(ctx context.Context, r ServerRequest) (Server, error) {
	return send[Server](ctx, c, request{
		method: "POST", path: "/v1/cluster/members", body: r, global: true, idempotent: true,
	})
}

// PromoteServer gives a server a vote.
func (c *Caller) PromoteServer(ctx context.Context, name string) error {
	path := "/v1/cluster/members/" + escape(name) + "/promote"
	_, err := send[Nothing](ctx, c, request{method: "POST", path: path, global: true})
	return err
}

// RemoveServer removes a server from the cluster for good.
func (c *Caller) RemoveServer(ctx context.Context, name string) error {
	_, err := send[Nothing](ctx, c, request{method: "DELETE", path: "/v1/cluster/members/" + escape(name),
		global: true})
	return err
}

// TransferLead moves the lead to another server, and returns who leads then.
func (c *Caller) TransferLead(ctx context.Context, r TransferRequest) (Lead, error) {
	return send[Lead](ctx, c, request{method: "POST", path: "/v1/cluster/transfer", body: r, global: true})
}

// A Level is a feature level.
type Level struct {
	Level uint64 `json:"level"`
}

// UpgradeCluster raises the feature level to the newest that all servers know.
func (c *Caller) UpgradeCluster(ctx context.Context) (Level, error) {
	return send[Level](ctx, c, request{method: "POST", path: "/v1/cluster/upgrade", global: true, idempotent: true})
}

// CheckCluster compares the states of all servers.
func (c *Caller) CheckCluster(ctx context.Context) (Sums, error) {
	return send[Sums](ctx, c, request{method: "GET", path: "/v1/cluster/check", global: true, wait: time.Minute})
}

// Backup returns the whole state, as restore takes it. Reading it ends with io.EOF only if it is
// complete: an answer that was cut short ends with another error.
func (c *Caller) Backup(ctx context.Context) (io.ReadCloser, error) {
	response, err := c.open(ctx, request{method: "GET", path: "/v1/cluster/backup", global: true})
	if err != nil {
		return nil, err
	}
	return &lines{response.Body, addressOf(response)}, nil
}
