package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/calendar"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A series is one of 02:30 in Berlin, and what was planned of it.
type seriesTest struct {
	*testing.T
	engine *memory.Engine
}

func inSpace(t *testing.T, try func(s *seriesTest)) {
	synctest.Test(t, func(t *testing.T) {
		s := &seriesTest{t, memory.Start(engine.NewGoClock())}
		try(s)
		if err := s.engine.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (s *seriesTest) planner(e engine.Engine) *planner {
	return &planner{e, slog.New(slog.DiscardHandler)}
}

func (s *seriesTest) reserve(id string, rule leasehold.Rule) {
	s.Helper()
	now := time.Now()
	starts, err := calendar.Starts(&rule, now, now.Add(calendar.Ahead), leasehold.MaxStarts)
	if err != nil {
		s.Fatal(err)
	}
	command := &core.Reserve{Namespace: "default", ID: id, Resource: id, Holder: "ann", Length: rule.Length, Rule: &rule,
		To: reservation.Moment(now.Add(calendar.Ahead).UnixNano())}
	for _, at := range starts {
		command.Starts = append(command.Starts, reservation.Moment(at.UnixNano()))
	}
	if _, err := s.engine.Do(s.Context(), command); err != nil {
		s.Fatal(err)
	}
}

func (s *seriesTest) cancel(id string) {
	s.Helper()
	if _, err := s.engine.Do(s.Context(), &core.CancelReservation{Namespace: "default", ID: id}); err != nil {
		s.Fatal(err)
	}
}

// starts are those that are planned, with how many events told of each.
func (s *seriesTest) starts(id string) (list []string) {
	s.Helper()
	err := s.engine.Read(s.Context(), func(v core.View) {
		told := map[string]int{}
		for _, e := range v.History("default").All() {
			if e.Kind == leasehold.Reserved {
				told[e.ID]++
			}
		}
		all, _ := v.Reservations("default", core.ReservationQuery{Resource: id, Most: 1000})
		for _, r := range all {
			if told[r.ID] != 1 {
				s.Errorf("%s was planned %d times", r.ID, told[r.ID])
			}
			list = append(list, r.From.Format("01-02T15:04Z"))
		}
	})
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// What is planned goes over both changes of the clock, and never twice.
func TestSeriesArePlannedAhead(t *testing.T) {
	inSpace(t, func(s *seriesTest) {
		rule := leasehold.Rule{Zone: "Europe/Berlin", Days: leasehold.AllDays, At: 150 * time.Minute, Length: time.Hour}
		for _, change := range []struct {
			begin, look time.Time
			want        string
		}{
			{time.Date(2000, 3, 10, 12, 0, 0, 0, time.UTC), time.Date(2000, 3, 14, 12, 0, 0, 0, time.UTC),
				"03-24T01:30Z 03-25T01:30Z 03-26T01:30Z 03-27T00:30Z 03-28T00:30Z"}, // there is no 02:30 on the 26th
			{time.Date(2000, 10, 13, 12, 0, 0, 0, time.UTC), time.Date(2000, 10, 17, 12, 0, 0, 0, time.UTC),
				"10-27T00:30Z 10-28T00:30Z 10-29T00:30Z 10-30T01:30Z 10-31T01:30Z"}, // and two on the 29th
		} {
			time.Sleep(time.Until(change.begin))
			s.reserve("daily", rule)
			p := s.planner(s.engine)
			if err := p.look(s.Context()); err != nil {
				s.Fatal(err)
			}
			if got := s.starts("daily"); len(got) != 14 {
				s.Errorf("%d are planned although nothing was to do: %v", len(got), got)
			}
			time.Sleep(time.Until(change.look))
			for range 3 {
				if err := p.look(s.Context()); err != nil {
					s.Fatal(err)
				}
			}
			if got := strings.Join(s.starts("daily"), " "); !strings.HasSuffix(got, change.want) {
				s.Errorf("planned are %s, want %s", got, change.want)
			}
			s.cancel("daily")
			time.Sleep(time.Hour) // its id is free again
		}
	})
}

// behind is the clock of a leader that is behind that of the planner.
type behind struct {
	engine.Clock
	by time.Duration
}

func (b behind) Wall() time.Time { return b.Clock.Wall().Add(-b.by) }

// A server whose clock is a year ahead of the leader's plans nothing: whatever it planned, the year between would have
// no occurrences.
func TestAServerAheadPlansNothingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		s := &seriesTest{t, memory.Start(behind{engine.NewGoClock(), year})}
		now := time.Now().Add(-year)
		rule := leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays, At: 14 * time.Hour, Length: time.Hour}
		starts, err := calendar.Starts(&rule, now, now.Add(calendar.Ahead), leasehold.MaxStarts)
		if err != nil {
			t.Fatal(err)
		}
		command := &core.Reserve{Namespace: "default", ID: "daily", Resource: "daily", Holder: "ann", Length: rule.Length,
			Rule: &rule, To: reservation.Moment(now.Add(calendar.Ahead).UnixNano())}
		for _, at := range starts {
			command.Starts = append(command.Starts, reservation.Moment(at.UnixNano()))
		}
		if _, err := s.engine.Do(s.Context(), command); err != nil {
			t.Fatal(err)
		}
		if err := s.planner(s.engine).look(s.Context()); !errors.Is(err, leasehold.ErrRefused) {
			t.Errorf("the planner came to %v", err)
		}
		err = s.engine.Read(s.Context(), func(v core.View) {
			if at := v.Series("default", nil)[0].Expanded; !at.Equal(now.Add(calendar.Ahead)) {
				t.Errorf("it is planned until %v, as if it was %v now", at, now)
			}
		})
		if err := errors.Join(err, s.engine.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A lossy engine carries commands out and loses the answers.
type lossy struct{ engine.Engine }

func (e lossy) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if _, err := e.Engine.Do(ctx, c); err != nil {
		return core.Answer{}, err
	}
	return core.Answer{}, engine.Undecided("the answer was lost")
}

// A paused engine carries commands out when it is told to.
type paused struct {
	engine.Engine
	begun, goOn chan struct{}
}

func (e paused) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	close(e.begun)
	<-e.goOn
	return e.Engine.Do(ctx, c)
}

// A server that was paused between its look and its command, one whose answers are lost, and their successor plan
// everything once.
func TestSeveralServersPlanASeriesOnce(t *testing.T) {
	inSpace(t, func(s *seriesTest) {
		s.reserve("daily", leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays, At: 14 * time.Hour, Length: time.Hour})
		time.Sleep(3 * 24 * time.Hour)
		old := paused{s.engine, make(chan struct{}), make(chan struct{})}
		ended := make(chan error)
		go func() { ended <- s.planner(old).look(s.Context()) }()
		<-old.begun
		if err := s.planner(lossy{s.engine}).look(s.Context()); !errors.Is(err, leasehold.ErrUndecided) {
			s.Fatal(err)
		}
		time.Sleep(26 * time.Hour) // the rule is due again
		if err := s.planner(s.engine).look(s.Context()); err != nil {
			s.Fatal(err)
		}
		want := fmt.Sprint(s.starts("daily"))
		close(old.goOn)
		if err := <-ended; err != nil {
			s.Error(err)
		}
		if got := fmt.Sprint(s.starts("daily")); got != want || len(s.starts("daily")) != 14 {
			s.Errorf("planned are %s, want %s", got, want)
		}
	})
}

// A planner that runs plans by itself, also after a time without servers, and ends with a rule.
func TestPlannerRuns(t *testing.T) {
	inSpace(t, func(s *seriesTest) {
		ctx, cancel := context.WithCancel(s.Context())
		until := time.Now().Add(40 * 24 * time.Hour)
		s.reserve("daily", leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays, At: 14 * time.Hour, Length: time.Hour, Until: until})
		time.Sleep(20 * 24 * time.Hour) // nobody plans, and nothing is left
		if got := s.starts("daily"); len(got) != 0 {
			s.Errorf("planned are %v", got)
		}
		done := make(chan struct{})
		go func() { s.planner(s.engine).run(ctx); close(done) }()
		synctest.Wait()
		if got := s.starts("daily"); len(got) != 14 {
			s.Errorf("planned are %v", got)
		}
		time.Sleep(19*24*time.Hour + time.Hour)
		if got := s.starts("daily"); len(got) != 1 {
			s.Errorf("planned at the end are %v", got)
		}
		time.Sleep(2 * 24 * time.Hour)
		err := s.engine.Read(ctx, func(v core.View) {
			if list := v.Series("default", nil); len(list) != 0 {
				s.Errorf("there is still %+v", list)
			}
		})
		if err != nil {
			s.Error(err)
		}
		cancel()
		<-done
	})
}
