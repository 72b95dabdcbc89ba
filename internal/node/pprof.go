package node

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/port"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// servePprof serves profiles until ctx ends, if an address is given. The channel is closed when
// it has ended.
func servePprof(ctx context.Context, c Config, log *slog.Logger) (ended <-chan struct{}, err error) {
	done := make(chan struct{})
	if c.PprofListen == "" {
		close(done)
		return done, nil
	}
	listener, err := listen(ctx, c.PprofListen)
	if err != nil {
		return nil, err
	}
	log.Info("profiles are served", "address", listener.Addr())
	var open atomic.Int64
	server := &http.Server{
		Handler:           port.NewHosts(nil, c.HostNames...).Guard(port.RefuseWhile(ctx, telemetry.PprofHandler())),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		// A profile that is under way ends with ctx, and is answered with what it has.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		},
	}
	drain := port.Drain{
		Linger: c.DrainLinger, Timeout: c.DrainTimeout, Begin: func() {}, Open: func() int { return int(open.Load()) },
	}
	go func() {
		defer close(done)
		if err := drain.Until(ctx, server, func() error { return server.Serve(listener) }); err != nil {
			log.Error("profiles are not served any more", "err", err)
		}
	}()
	return done, nil
}
