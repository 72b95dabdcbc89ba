package node

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// maxProfilers is how many connections the port for profiles takes.
const maxProfilers = 100

// servePprof serves profiles until ctx ends, if an address is given. The channel is closed when
// it has ended.
func servePprof(ctx context.Context, c Config, gates *listen.Gates, log *slog.Logger) (ended <-chan struct{}, err error) {
	done := make(chan struct{})
	if c.PprofListen == "" {
		close(done)
		return done, nil
	}
	listener, err := openPort(ctx, c.PprofListen)
	if err != nil {
		return nil, err
	}
	log.Info("profiles are served", "address", listener.Addr())
	gate := listen.NewGate(listener, listen.Limits{Name: "profiles", Most: maxProfilers, Log: log})
	gates.Add(gate)
	server := &http.Server{
		Handler:           listen.Greeted(listen.NewHosts(nil, c.HostNames...).Guard(listen.RefuseWhile(ctx, telemetry.PprofHandler()))),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		// A profile that is under way ends with ctx, and is answered with what it has.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: listen.Greet,
	}
	drain := listen.Drain{
		Linger: c.DrainLinger, Timeout: c.DrainTimeout, Begin: func() {}, Open: gate.Open,
	}
	go func() {
		defer close(done)
		if err := drain.Until(ctx, server, func() error { return server.Serve(gate) }); err != nil {
			log.Error("profiles are not served any more", "err", err)
		}
	}()
	return done, nil
}
