package node

import (
	"context"
	"log/slog"

	"github.com/leasehold/leasehold/internal/access/upkeep"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/cluster"
	"github.com/leasehold/leasehold/internal/metric"
)

// newKeeper returns what looks after access.
func newKeeper(c Config, log *slog.Logger) (*upkeep.Keeper, error) {
	return upkeep.New(upkeep.Config{Dir: c.Data, Server: c.Name, Begin: c.Access, Log: log}), nil
}

// startAccess begins access, if that was set, before the first client is let in. It then looks after it until ctx
// ends. It reports whether access is on.
func (s *server) startAccess(ctx context.Context, e *cluster.Engine) (on bool, err error) {
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
