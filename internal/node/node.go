// Package node puts one server together. It is the only place that knows all of
// its parts, and reads as their table of contents.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/door/terraform"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/cluster"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/metric"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// Config is what a server is made from.
type Config struct {
	config.Server
	Version v1.Version
	Log     io.Writer // where log lines go
}

// Run runs a server until ctx ends, and has then finished what was under way. It
// calls ready once, with the address that it listens on. An error means that the
// server could not start, or that it could not go on.
func Run(ctx context.Context, c Config, ready func(address string)) error {
	log, err := telemetry.NewLog(c.Log, c.LogFormat, c.LogLevel)
	if err != nil {
		return err
	}
	metrics, gates := telemetry.NewMetrics(), &listen.Gates{}
	metrics.Registerer().MustRegister(gates)
	ring, err := clientRing(c, log, metrics)
	if err != nil {
		return err
	}
	// The address first: a second server on it should not touch the data.
	listener, err := openPort(ctx, c.Listen)
	if err != nil {
		return err
	}
	settings, err := engineConfig(c, listener, log, metrics)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	settings.Gates = gates
	// The door serves before there is anything behind it: a server may wait for others of
	// its cluster for long, and should say so.
	door := native.NewShut(native.Config{
		Version: c.Version, Metrics: metrics, Log: log, Linger: c.DrainLinger, DrainTimeout: c.DrainTimeout,
		TLS: listenTLS(ring), Mutual: c.TLS.CA != "", Hosts: clientHosts(c, listener, ring), Gates: gates,
	})
	door.Mount(func(e engine.Engine) http.Handler {
		return terraform.New(e, terraform.Config{Metrics: metrics, Log: log, Stay: door.Stay, Stopping: door.Stopping()})
	}, terraform.Patterns...)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- door.Serve(ctx, listener) }()
	if c.PeerListen != "" {
		log.Info("this server starts; clients are told so until it has found its cluster", "address", listener.Addr())
	}
	e, err := start(ctx, settings)
	if err != nil || e == nil {
		stop()
		return errors.Join(err, <-served)
	}
	tuneMemory()
	metrics.CountBy(e.Read)
	door.Open(e)
	profiles, err := servePprof(ctx, c, gates, log)
	if err != nil {
		stop()
		return errors.Join(err, <-served, e.Close())
	}
	defer func() {
		stop()
		select {
		case <-profiles:
		case <-e.Failed(): // a profile may take half a minute
		}
	}()
	azure, err := openAzure(ctx, c, e, metrics, gates, log)
	if err != nil {
		stop()
		return errors.Join(err, <-served, e.Close())
	}
	all := azure.beside(ctx, served, stop)
	ready(listener.Addr().String())
	return await(e, all, stop)
}

// start starts the engine. There is none, and no error, if the server was told to stop
// before it had begun.
func start(ctx context.Context, c cluster.Config) (*cluster.Engine, error) {
	e, err := cluster.Start(ctx, c)
	if err != nil && ctx.Err() != nil {
		return nil, nil
	}
	return e, err
}

// engineConfig is what the engine is told of the settings.
func engineConfig(c Config, listener net.Listener, log *slog.Logger, metrics *telemetry.Metrics) (cluster.Config, error) {
	settings := cluster.Config{
		Dir: c.Data, Log: log, Metrics: metrics.Registerer(),
		SnapshotEvery: c.SnapshotEvery, SegmentBytes: c.SegmentSize, MinFree: c.MinFree, JournalBytes: c.JournalSize, Caps: c.Caps,
		Name: c.Name, Version: c.Version.Version, PeerListen: c.PeerListen, PeerAdvertise: c.PeerAdvertise,
		ClientAdvertise: advertised(c, listener), Join: c.Join, Insecure: c.Insecure,
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
	ring, err := openRing(c.PeerTLS, "servers", log, metrics)
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

// garbage is how much of it there may be, in percent of what is alive, before it is
// collected. With Go's own 100 a million leases, half a gigabyte, would take 1.3.
const garbage = 60

// tuneMemory comes after the start, which would take longer, and gives back what that
// took. It leaves alone what somebody set with GOGC.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	debug.FreeOSMemory()
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
			err = nil // what the door could not finish is of no interest any more
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

// clientRing has the certificates of the client port; nil: it is plain.
func clientRing(c Config, log *slog.Logger, metrics *telemetry.Metrics) (*certificate.Keyring, error) {
	if c.TLS.Cert == "" {
		return nil, nil
	}
	return openRing(c.TLS, "clients", log, metrics)
}

// listenTLS is how clients are talked to; nil: in plain.
func listenTLS(ring *certificate.Keyring) *tls.Config {
	if ring == nil {
		return nil
	}
	return ring.Listen()
}

// openRing reads certificates, and says when changed ones can not be used.
func openRing(files certificate.Files, of string, log *slog.Logger, metrics *telemetry.Metrics) (*certificate.Keyring, error) {
	ring, err := certificate.Open(files, func(err error) {
		log.Error("the new certificates can not be used: the old ones stay", "for", of, "err", err)
	})
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	metrics.Registerer().MustRegister(metric.CertificateEnds.GaugeFunc(func() float64 { return float64(ring.Ends().Unix()) }, of))
	switch left := time.Until(ring.Ends()); {
	case left <= 0:
		log.Error("the certificate has ended, and nobody trusts it: make another one with leasehold cert", "for", of, "file", files.Cert, "ended", ring.Ends().UTC())
	case left < soon:
		log.Warn("the certificate ends soon: make another one with leasehold cert", "for", of, "file", files.Cert, "left", left.Round(time.Minute))
	}
	return ring, nil
}

// soon is when somebody should think of the next certificate.
const soon = 30 * 24 * time.Hour

func openPort(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with --listen", err)
	}
	return listener, nil
}
