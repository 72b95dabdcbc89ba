package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/access/upkeep"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/cluster"
	"github.com/leasehold/leasehold/internal/metric"
)

// newKeeper returns what looks after access.
func newKeeper(c Config, log *slog.Logger) (*upkeep.Keeper, error) {
	file, err := readAccess(c.AccessFile)
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid,
			Message: fmt.Sprintf("access-file %s cannot be used: %v", c.AccessFile, err)}
	}
	return upkeep.New(upkeep.Config{Dir: c.Data, Server: c.Name, Begin: c.Access, File: file, Log: log}), nil
}

// readAccess reads the file that declares who may do what; nil: there is none. Files that only look different have the
// same hash.
func readAccess(name string) (*upkeep.File, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	doc, err := document.Parse(text)
	if err != nil {
		return nil, err
	}
	same, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(same)
	return &upkeep.File{
		Name: name, Hash: hex.EncodeToString(sum[:]),
		Items: func(current *access.Policy, now time.Time) (access.Items, error) {
			return document.Items(doc, current, now)
		},
	}, nil
}

// startAccess begins access, if that was set, before the first client is let in. It then looks after it until ctx
// ends. It reports whether access is on.
func (s *server) startAccess(ctx context.Context, e cluster.Server) (on bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-e.Failed():
			cancel(e.Failure())
		case <-ctx.Done():
		}
	}()
	if on, err = s.keeper.Start(ctx, e); err != nil {
		cancel(nil)
		return false, err
	}
	s.metrics.Registerer().MustRegister(metric.TokensEnding.GaugeFunc(s.keeper.Ending),
		metric.AccessOn.GaugeFunc(func() float64 {
			if engine.PolicyOf(e) != nil {
				return 1
			}
			return 0
		}))
	go s.keeper.Run(ctx)
	return on, nil
}

// Warnings returns what somebody should look at beside what the engine knows.
func (s *server) Warnings() []string { return append(s.keeper.Warnings(), s.endingCertificates()...) }
