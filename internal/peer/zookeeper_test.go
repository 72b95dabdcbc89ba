//go:build linux

package peer

import (
	"fmt"
	"testing"
	"time"
)

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	m := StartZooKeeper(t, ZooKeeperConfig{Tick: 500 * time.Millisecond}).Members[0]
	m.Kill()
	if m.serves() == nil {
		t.Error("it serves after a kill")
	}
	m.Restart()
	if err := m.serves(); err != nil {
		t.Error(err)
	}
}

func TestZooKeeperOfThree(t *testing.T) {
	t.Parallel()
	z := StartZooKeeper(t, ZooKeeperConfig{Members: 3, Tick: 200 * time.Millisecond})
	first := z.Leader()
	follower := z.Follower()
	follower.Cut()
	await(t, "the follower to notice that it is cut off", func() error {
		if follower.serves() == nil {
			return fmt.Errorf("it serves")
		}
		return nil
	})
	follower.Heal()
	await(t, "the follower to come back", follower.serves)
	first.Kill()
	if second := z.Leader(); second == first {
		t.Error("a member that was killed leads")
	}
	first.Restart()
	await(t, "the member that was killed", first.serves)
}
