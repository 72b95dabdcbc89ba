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
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine/cluster"
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
	// The address first: a second server on it should not touch the data.
	secure, err := clientTLS(c, log)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	metrics := telemetry.NewMetrics()
	e, err := cluster.Start(ctx, cluster.Config{
		Dir: c.Data, Log: log, Metrics: metrics.Registerer(),
		SnapshotEvery: c.SnapshotEvery, SegmentBytes: c.SegmentSize, MinFree: c.MinFree,
		JournalBytes: c.JournalSize,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	tuneMemory()
	metrics.CountBy(e.Read)
	door := native.New(e, native.Config{Version: c.Version, Metrics: metrics, Log: log, TLS: secure, DrainTimeout: c.DrainTimeout})
	stopPprof, err := servePprof(ctx, c.PprofListen, log)
	if err != nil {
		return errors.Join(err, listener.Close(), e.Close())
	}
	defer stopPprof()
	ready(listener.Addr().String())
	return serve(ctx, e, door, listener)
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

// serve runs the door until ctx ends or the engine fails. The engine ends last: the
// door has requests to finish with it.
func serve(ctx context.Context, e *cluster.Engine, door *native.Door, listener net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-e.Failed():
			stop()
		case <-ctx.Done():
		}
	}()
	err := door.Serve(ctx, listener)
	select {
	case <-e.Failed():
		// What the door could not finish is of no interest any more.
		return errors.Join(e.Failure(), e.Close())
	default:
		return errors.Join(err, e.Close())
	}
}

// clientTLS is how clients are talked to; nil: in plain.
func clientTLS(c Config, log *slog.Logger) (*tls.Config, error) {
	if c.TLS.Cert == "" {
		return nil, nil
	}
	ring, err := openRing(c.TLS, "clients", log)
	if err != nil {
		return nil, err
	}
	return ring.Listen(), nil
}

// openRing reads certificates, and says when changed ones can not be used.
func openRing(files certificate.Files, of string, log *slog.Logger) (*certificate.Keyring, error) {
	ring, err := certificate.Open(files, func(err error) {
		log.Error("the new certificates can not be used: the old ones stay", "for", of, "err", err)
	})
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	if left := time.Until(ring.Ends()); left < soon {
		log.Warn("the certificate ends soon: make another one with leasehold cert", "for", of, "file", files.Cert, "left", left.Round(time.Minute))
	}
	return ring, nil
}

// soon is when somebody should think of the next certificate.
const soon = 30 * 24 * time.Hour

func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with --listen", err)
	}
	return listener, nil
}

// servePprof serves profiles, if an address is given, and returns how to end that.
func servePprof(ctx context.Context, address string, log *slog.Logger) (func(), error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: telemetry.PprofHandler(), ReadHeaderTimeout: 5 * time.Second}
	log.Info("profiles are served", "address", listener.Addr())
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("profiles are not served any more", "err", err)
		}
	}()
	return func() { _ = server.Close() }, nil
}
