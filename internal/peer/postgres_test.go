//go:build linux

package peer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	clock := NewClock(t)
	p := StartPostgres(t, PostgresConfig{Clock: clock})
	p.SQL("create table kept as select 1 as a")
	p.Kill()
	if p.ready() == nil {
		t.Error("it answers after a kill")
	}
	p.Restart()
	if got := p.SQL("select a from kept"); got != "1" {
		t.Errorf("after a kill, a is %q", got)
	}
	p.Pause()
	if p.ready() == nil {
		t.Error("it answers while it is paused")
	}
	p.Resume()
	await(t, "an answer after the pause", p.ready)

	clock.Step(time.Hour)
	seconds, err := strconv.ParseInt(p.SQL("select floor(extract(epoch from clock_timestamp()))"), 10, 64)
	now := time.Unix(seconds, 0)
	if off := time.Until(now); err != nil || off < 59*time.Minute || off > time.Hour+time.Second {
		t.Errorf("after a step of one hour the clock is %v ahead, %v", off, err)
	}
}

func TestPostgresStandby(t *testing.T) {
	t.Parallel()
	primary := StartPostgres(t, PostgresConfig{})
	standby := primary.StartStandby(t, PostgresConfig{Name: "second"})
	primary.Set("synchronous_standby_names", "second")
	await(t, "the standby to be synchronous", func() error {
		if got := primary.SQL("select sync_state from pg_stat_replication"); got != "sync" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	primary.SQL("create table kept as select 1 as a")
	standby.Link.Cut()
	primary.Set("synchronous_standby_names", "")
	primary.SQL("update kept set a = 2")
	standby.Promote()
	if got := standby.SQL("update kept set a = a + 10 returning a"); got != "11" {
		t.Errorf("the standby was behind, and has %q", got)
	}
	if got := primary.SQL("select a from kept"); got != "2" {
		t.Errorf("the old primary has %q", got)
	}
}

func TestPgBouncer(t *testing.T) {
	t.Parallel()
	p := StartPostgres(t, PostgresConfig{})
	b := StartPgBouncer(t, p.Address)
	said, err := p.output("psql", "-qAt", "-d", b.URL(), "-c", "select current_user")
	if err != nil || said != "test" {
		t.Errorf("through the pool: %q, %v", said, err)
	}
	b.Kill()
	if _, err := p.output("psql", "-qAt", "-d", b.URL(), "-c", "select 1"); err == nil {
		t.Error("it answers after a kill")
	}
	b.Restart()
	if _, err := p.output("psql", "-qAt", "-d", b.URL(), "-c", "select 1"); err != nil {
		t.Error(err)
	}
	if said := p.SQL("select version()"); !strings.HasPrefix(said, "PostgreSQL") {
		t.Errorf("the version is %q", said)
	}
}
