package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door/azure"
	"github.com/leasehold/leasehold/internal/door/azure/account"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// An azureServer is the door for Azure's clients on its own port. Nil is none.
type azureServer struct {
	door     *azure.Door
	listener net.Listener
	tls      *tls.Config
}

// openAzure opens the port, if there is to be one.
func openAzure(ctx context.Context, c Config, e engine.Engine, metrics *telemetry.Metrics, log *slog.Logger) (*azureServer, error) {
	if c.Azure.Listen == "" {
		return nil, nil
	}
	book, err := account.Open(c.Azure.Accounts, c.Azure.Secret)
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	pair := &pairFile{cert: c.Azure.Cert, key: c.Azure.Key, log: log}
	if err := pair.load(); err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("azure-cert and azure-key: %v", err)}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Azure.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with --azure-listen", err)
	}
	if len(book.Names()) == 0 {
		log.Warn("there is no azure account yet: make one with leasehold azure account create", "file", c.Azure.Accounts)
	}
	log.Info("azure clients are served", "address", listener.Addr().String(), "accounts", len(book.Names()))
	door := azure.New(e, azure.Config{Accounts: book, Domain: c.Azure.Domain, Metrics: metrics, Log: log, DrainTimeout: c.DrainTimeout})
	return &azureServer{door, listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get}}, nil
}

// start serves until ctx ends. If it ends before that, so does everything else.
func (s *azureServer) start(ctx context.Context, stop func()) (finished func() error) {
	if s == nil {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		done <- s.door.Serve(ctx, s.listener, s.tls)
		stop()
	}()
	return func() error { return <-done }
}

// A pairFile is a certificate and its key, read again when the file changes.
type pairFile struct {
	cert, key string
	log       *slog.Logger

	mu       sync.Mutex // guards what follows
	pair     *tls.Certificate
	modified time.Time
	looked   time.Time
}

func (p *pairFile) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.looked) > time.Second {
		if err := p.load(); err != nil {
			p.log.Error("the new certificate can not be used: the old one stays", "file", p.cert, "err", err)
		}
	}
	if p.pair == nil {
		return nil, errors.New("there is no certificate")
	}
	return p.pair, nil
}

func (p *pairFile) load() error {
	p.looked = time.Now()
	info, err := os.Stat(p.cert)
	if err != nil {
		return err
	}
	if info.ModTime().Equal(p.modified) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return err
	}
	p.pair, p.modified = &pair, info.ModTime()
	return nil
}
