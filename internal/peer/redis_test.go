//go:build linux

package peer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	r := StartRedis(t, RedisConfig{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	r.Do("SET", "a", "1")
	r.Kill()
	if r.Running() || r.ping() == nil {
		t.Error("it runs after a kill")
	}
	r.Restart()
	if got := r.Do("GET", "a"); got != "1" {
		t.Errorf("after a kill, a is %q", got)
	}
	r.Pause()
	if r.ping() == nil {
		t.Error("it answers while it is paused")
	}
	r.Resume()
	await(t, "an answer after the pause", r.ping)

	older := r.Copy()
	r.Do("SET", "a", "2")
	r.Restore(older)
	if got := r.Do("GET", "a"); got != "1" {
		t.Errorf("after an older copy was restored, a is %q", got)
	}
}

func TestRedisReplica(t *testing.T) {
	t.Parallel()
	primary := StartRedis(t, RedisConfig{})
	replica := primary.StartReplica(t, RedisConfig{})
	primary.Do("SET", "a", "1")
	// WAIT would wait for what its own connection wrote, which is nothing.
	await(t, "the replica to have it", func() error {
		if got := replica.Do("GET", "a"); got != "1" {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
	replica.Link.Hang()
	primary.Do("SET", "a", "2")
	replica.Promote()
	if got := replica.Do("GET", "a"); got != "1" {
		t.Errorf("the replica was behind, and has %q", got)
	}
	if got := replica.Do("SET", "a", "3"); got != "OK" {
		t.Errorf("the promoted replica answers %q", got)
	}
	if got := primary.Do("GET", "a"); got != "2" {
		t.Errorf("the old primary has %q", got)
	}
}

func TestRedisClock(t *testing.T) {
	t.Parallel()
	clock := NewClock(t)
	r := StartRedis(t, RedisConfig{Clock: clock})
	off := func() time.Duration {
		seconds, _ := strconv.ParseInt(strings.Fields(r.Do("TIME"))[0], 10, 64)
		return time.Until(time.Unix(seconds, 0))
	}
	for _, step := range []time.Duration{5 * time.Second, -10 * time.Second, 65 * time.Second, -time.Hour} {
		clock.Step(step)
		if got := off() - clock.Ahead(); got < -30*time.Second || got > time.Second {
			t.Errorf("after a step of %v, the clock is %v from what it should be", step, got)
		}
	}
}

func TestRedisSentinel(t *testing.T) {
	t.Parallel()
	primary := StartRedis(t, RedisConfig{})
	replica := primary.StartReplica(t, RedisConfig{})
	s := StartSentinels(t, primary)
	if got := s.Primary(); got != primary.Address {
		t.Fatalf("the primary is %s, and Sentinel says %s", primary.Address, got)
	}
	primary.Kill()
	await(t, "a failover", func() error {
		if got := s.Primary(); got != replica.Address {
			return fmt.Errorf("the primary is still %s", got)
		}
		return nil
	})
	if got := replica.Do("SET", "a", "1"); got != "OK" {
		t.Errorf("the new primary answers %q", got)
	}
}

func TestRedisCluster(t *testing.T) {
	t.Parallel()
	c := StartRedisCluster(t, RedisConfig{})
	moved := 0
	for _, r := range c.Nodes {
		for i := range 3 {
			if _, err := r.try("SET", fmt.Sprint(i), "1"); err != nil && strings.Contains(err.Error(), "MOVED") {
				moved++
			} else if err != nil {
				t.Error(err)
			}
		}
	}
	if moved != 6 {
		t.Errorf("of 3 keys on 3 nodes, %d of 9 writes were on the wrong one", moved)
	}
	c.Nodes[0].Kill()
	c.Nodes[0].Restart()
	await(t, "the cluster after a restart", c.ok)
}
