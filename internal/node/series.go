package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/calendar"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/engine"
)

// A planner plans the occurrences of recurring reservations, two weeks ahead. Each server has one, not the leader
// alone: a command says how far its series was planned before, so the same from a second server, or once more after an
// answer was lost, changes nothing.
type planner struct {
	engine engine.Engine
	log    *slog.Logger
}

// How often a planner looks, how soon again after something failed, and how much it leaves to the next day.
const (
	planEvery = 5 * time.Minute
	planAgain = 10 * time.Second
	planSlack = 24 * time.Hour
)

// run looks at once, and then again and again until ctx ends.
func (p *planner) run(ctx context.Context) {
	for {
		pause := planEvery
		if err := p.look(ctx); errors.Is(err, leasehold.ErrRefused) {
			p.log.Warn("recurring reservations are left to the other servers to plan", "err", err)
		} else if err != nil {
			p.log.Debug("recurring reservations could not be planned: this server tries again", "err", err)
			pause = planAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// look plans what is not planned far enough ahead. It returns the first error, after it tried all.
func (p *planner) look(ctx context.Context) (failed error) {
	ctx = engine.WithAsker(ctx, &access.System)
	var spaces []string
	if err := p.engine.Read(ctx, func(v core.View) { spaces = v.Namespaces() }); err != nil {
		return err
	}
	for _, space := range spaces {
		var list []leasehold.Series
		now := time.Now()
		err := p.engine.Read(ctx, func(v core.View) {
			list = v.Series(space, nil)
			if date := v.Date().Time(); date.After(now) {
				now = date // as the cluster sees it
			}
		})
		for i := range list {
			if err == nil {
				err = p.plan(ctx, &list[i], now)
			}
		}
		if err != nil {
			failed = err
		}
	}
	return failed
}

// plan plans more of one series, if it is time.
func (p *planner) plan(ctx context.Context, s *leasehold.Series, now time.Time) error {
	ended := !s.Rule.Until.IsZero() && !s.Expanded.Before(s.Rule.Until)
	if ended || s.Expanded.After(now.Add(calendar.Ahead-planSlack)) {
		return nil
	}
	from, to := s.Expanded, now.Add(calendar.Ahead)
	if from.Before(now) {
		from = now // nobody can use what would have begun while there was no server
	}
	starts, err := calendar.Starts(&s.Rule, from, to, leasehold.MaxStarts)
	if err != nil {
		p.log.Warn("a recurring reservation cannot be planned", "namespace", s.Namespace, "id", s.ID, "err", err)
		return nil
	}
	command := &core.Reserve{Namespace: s.Namespace, ID: s.ID, After: reservation.Moment(s.Expanded.UnixNano()),
		To: reservation.Moment(to.UnixNano())}
	for _, start := range starts {
		command.Starts = append(command.Starts, reservation.Moment(start.UnixNano()))
	}
	_, err = p.engine.Do(ctx, command)
	return err
}
