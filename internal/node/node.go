// Package node puts one server together. It is the only place that knows all of
// its parts, and reads as their table of contents.
package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/upkeep"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine/cluster"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// Config is what a server is made from.
type Config struct {
	config.Server
	Version v1.Version
	Log     io.Writer // where log lines go
}

// A server is all that Run puts together.
type server struct {
	Config
	log      *slog.Logger
	metrics  *telemetry.Metrics
	gates    *listen.Gates // of all ports
	backend  *door.Backend // of all doors
	listener net.Listener  // of the client port
	ports    map[*listen.Host]net.Listener
	rings    []named        // all certificates
	keeper   *upkeep.Keeper // of access
}

// Serving is what is known of a server once it is ready.
type Serving struct {
	Address string // that it listens on
	Access  bool   // there are rules who may do what
}

// Run runs a server until ctx ends, and has then finished what was under way. It
// calls ready once, when clients are let in. An error means that the server could not
// start, or that it could not go on.
func Run(ctx context.Context, c Config, ready func(Serving)) error {
	s, err := newServer(c)
	if err != nil {
		return err
	}
	settings, err := s.open(ctx)
	if err != nil {
		s.closePorts()
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- listen.Serve(ctx, s.ports) }()
	e, err := start(ctx, settings)
	if err != nil || e == nil {
		stop()
		return errors.Join(err, <-served)
	}
	tuneMemory()
	s.metrics.CountBy(e.Read)
	on, err := s.startAccess(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			err = nil // it was told to stop before it had begun
		}
		stop()
		return errors.Join(err, <-served, e.Close())
	}
	go (&planner{e, s.log}).run(ctx)
	s.backend.Open(e)
	e.Opened()
	ready(Serving{s.listener.Addr().String(), on})
	return await(e, served, stop)
}

// newServer returns a server that has touched nothing yet.
func newServer(c Config) (*server, error) {
	log, err := telemetry.NewLog(c.Log, c.LogFormat, c.LogLevel)
	if err != nil {
		return nil, err
	}
	s := &server{
		Config: c, log: log, metrics: telemetry.NewMetrics(), gates: &listen.Gates{},
		ports: map[*listen.Host]net.Listener{},
	}
	s.metrics.Registerer().MustRegister(s.gates)
	if s.keeper, err = newKeeper(c, log); err != nil {
		return nil, err
	}
	s.backend = door.NewStarting(door.Options{Version: c.Version, Metrics: s.metrics, Log: log, Warner: s,
		Gates: s.gates})
	return s, nil
}

// open opens the ports, and returns what the engine is told.
func (s *server) open(ctx context.Context) (cluster.Config, error) {
	if err := s.openPorts(ctx); err != nil {
		return cluster.Config{}, err
	}
	if s.PeerListen != "" {
		s.log.Info("starting: clients are told so until this server has found its cluster",
			"address", s.listener.Addr())
	}
	return s.engineConfig()
}

// start starts the engine. There is none, and no error, if the server was told to stop
// before it had begun.
func start(ctx context.Context, c cluster.Config) (cluster.Server, error) {
	e, err := cluster.Open(ctx, c)
	if err != nil && ctx.Err() != nil {
		return nil, nil
	}
	return e, err
}

// engineConfig is what the engine is told of the settings.
func (s *server) engineConfig() (cluster.Config, error) {
	c := s.Config
	settings := cluster.Config{
		Dir: c.Data, Log: s.log, Metrics: s.metrics.Registerer(), Gates: s.gates,
		SnapshotEvery: c.SnapshotEvery, SegmentBytes: c.SegmentSize, MinFree: c.MinFree,
		JournalBytes: c.JournalSize, Caps: c.Caps,
		Name: c.Name, Version: c.Version.Version, PeerListen: c.PeerListen, PeerAdvertise: c.PeerAdvertise,
		ClientAdvertise: advertised(c, s.listener), Join: c.Join, Insecure: c.Insecure,
	}
	if _, port, _ := net.SplitHostPort(c.PeerAdvertise); port == "0" {
		settings.PeerAdvertise = "" // whichever port it turns out to be
	}
	for _, m := range c.InitialCluster {
		settings.InitialCluster = append(settings.InitialCluster, replica.Member{Name: m.Name, Peer: m.Peer})
	}
	if c.PeerTLS.Cert == "" {
		return settings, nil
	}
	ring, err := s.openRing(c.PeerTLS, "servers")
	if err != nil {
		return settings, err
	}
	settings.PeerTLS = ring.Peers
	return settings, nil
}

// advertised is the URL that the others tell clients: what was said, or the address
// that this server listens on, with the machine's name if that is all of them.
func advertised(c Config, listener net.Listener) string {
	if c.Advertise != "" {
		return c.Advertise
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsUnspecified() {
		return c.URL(listener.Addr().String())
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return c.URL(net.JoinHostPort(host, strconv.Itoa(address.Port)))
}

// endWithin is how long a server whose engine failed takes for its last words. The process has
// to end soon, whatever hangs: until it does, nobody starts the next one.
const endWithin = 1500 * time.Millisecond

// An ending is what await has to know of an engine.
type ending interface {
	Failed() <-chan struct{}
	Failure() error
	Close() error
}

// await returns when the server has ended: because it was told to, or because the engine
// failed. The engine ends last: the door has requests to finish with it, and only then
// the lead is handed over.
func await(e ending, served <-chan error, stop func()) error {
	ended := make(chan error, 1)
	go func() {
		err := <-served
		closed := e.Close()
		if isClosed(e.Failed()) {
			err = nil // what the door could not finish no longer matters
		}
		ended <- errors.Join(err, closed)
	}()
	select {
	case err := <-ended:
		if isClosed(e.Failed()) {
			err = errors.Join(e.Failure(), err)
		}
		return err
	case <-e.Failed():
		stop()
	}
	late := time.NewTimer(endWithin)
	defer late.Stop()
	select {
	case err := <-ended:
		return errors.Join(e.Failure(), err)
	case <-late.C:
		return e.Failure()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
