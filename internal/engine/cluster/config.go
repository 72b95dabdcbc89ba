package cluster

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
	"github.com/leasehold/leasehold/internal/listen"
)

// Config is what an engine needs to know.
type Config struct {
	Dir   string
	Clock engine.Clock // nil: the system's
	Log   *slog.Logger // nil: silent

	// SnapshotEvery is how many bytes of log there are between two snapshots.
	SnapshotEvery int64
	// SegmentBytes is the size of one file of the log.
	SegmentBytes int64
	// MinFree is how many bytes of room there must be on the disk for new leases.
	// Renewals and releases need none.
	MinFree uint64
	// Caps are those of a cluster in which nobody set any. What is 0 is the core's own.
	Caps leasehold.Caps
	// JournalBytes is how large the journal may be; 0: none is kept.
	JournalBytes int64
	// Metrics takes the engine's figures, if it is not nil.
	Metrics prometheus.Registerer

	// Name is that of the server among those of its cluster.
	Name string
	// Version is of the program, for the others to know.
	Version string
	// PeerListen is the address for other servers; empty: none can come.
	PeerListen string
	// PeerAdvertise is what they are told to use; empty: what PeerListen turned out to be.
	PeerAdvertise string
	// ClientAdvertise is what they tell clients.
	ClientAdvertise string
	// InitialCluster has the names and addresses of all servers of a cluster that begins,
	// this one among them, and the same on all of them.
	InitialCluster []replica.Member
	// Join has addresses of servers of a cluster that runs, to ask to be taken in.
	Join []string
	// PeerTLS returns the certificate of this server and the authority of all of them: it is
	// called for each connection. Nil: traffic between servers is plain, which needs
	// Insecure, and stays on this machine.
	PeerTLS  func() *tls.Config
	Insecure bool

	// Gates is where the connections of other servers are counted; nil: nowhere.
	Gates *listen.Gates

	// For tests: what every log write has to get past, another network than the machine's, and
	// other levels than this program's.
	beforeWrite  func() error
	peerListener net.Listener
	peerDial     func(ctx context.Context, address string) (net.Conn, error)
	levels       replica.Levels
}

// known returns the levels that the server's program knows.
func (c Config) known() replica.Levels {
	if c.levels == (replica.Levels{}) {
		return replica.KnownLevels
	}
	return c.levels
}

// Defaults for what Config leaves at zero.
const (
	DefaultSnapshotEvery = 64 << 20
	DefaultSegmentBytes  = 64 << 20
	DefaultName          = "n1"
)

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = DefaultSnapshotEvery
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.Name == "" {
		c.Name = DefaultName
	}
	return c
}

// onDisk says how the data are kept.
func onDisk(c Config) storage.Config {
	return storage.Config{SegmentBytes: c.SegmentBytes, SnapshotEvery: c.SnapshotEvery, MinFree: c.MinFree, Log: c.Log,
		Metrics: c.Metrics, Before: c.beforeWrite}
}
