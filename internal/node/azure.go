package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/door/azure"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// An azureServer is the door for Azure's clients on its own port. Nil is none.
type azureServer struct {
	door     *azure.Door
	listener net.Listener
	tls      *tls.Config
}

// openAzure opens the port, if there is to be one.
func openAzure(ctx context.Context, c Config, e engine.Engine, metrics *telemetry.Metrics, gates *listen.Gates, log *slog.Logger) (*azureServer, error) {
	if c.Azure.Listen == "" {
		return nil, nil
	}
	book, err := azureaccount.Open(c.Azure.Accounts, c.Azure.Secret)
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	ring, err := openRing(certificate.Files{Cert: c.Azure.Cert, Key: c.Azure.Key}, "azure clients", log, metrics)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Azure.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with --azure-listen", err)
	}
	if len(book.Names()) == 0 {
		log.Warn("there is no azure account yet: make one with leasehold azure account create", "file", c.Azure.Accounts)
	}
	log.Info("azure clients are served", "address", listener.Addr().String(), "accounts", len(book.Names()))
	door := azure.New(e, azure.Config{
		Accounts: book, Domain: c.Azure.Domain, Hosts: azureHosts(c, ring), Gates: gates, Metrics: metrics, Log: log,
		Linger: c.DrainLinger, DrainTimeout: c.DrainTimeout,
	})
	return &azureServer{door, listener, ring.Listen()}, nil
}

// beside serves until ctx ends, beside another door, and returns what tells when both
// have ended. When one of them does, so does the other.
func (s *azureServer) beside(ctx context.Context, served <-chan error, stop func()) <-chan error {
	if s == nil {
		return served
	}
	ours, all := make(chan error, 1), make(chan error, 1)
	go func() { ours <- s.door.Serve(ctx, s.listener, s.tls) }()
	go func() {
		var err, other error
		select {
		case err = <-served:
			stop()
			other = <-ours
		case other = <-ours:
			stop()
			err = <-served
		}
		all <- errors.Join(err, other)
	}()
	return all
}
