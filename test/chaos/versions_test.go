//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/test/process"
)

// The newest level that the newest release knows, and that this tree knows.
const oldLevel, newLevel = 1, 2

// Servers of the newest release are upgraded to this tree under the load of chaos, go back, are
// upgraded again, and the level is raised: what clients were told is true all the while, and
// servers of both versions have the same state. How each server ends, and which one is stopped
// meanwhile, is drawn.
func TestTwoVersionsAtOnce(t *testing.T) {
	release, tree := process.BuildRelease(t, t.TempDir()), build(t)
	c := startNamed(t, clusterConfig{servers: 3, binary: release})
	if c.report.Seed = *seed; c.report.Seed == 0 {
		c.report.Seed = rand.Uint64()
	}
	c.report.tell("seed %d", c.report.Seed)
	trouble := &trouble{c, t.Context(), rand.New(rand.NewPCG(c.report.Seed, 1))}
	l := startLoad(c, c.report, loadConfig{namespace: "versions", seed: c.report.Seed, hop: 5})
	for _, binary := range []string{tree, release, tree} {
		for _, i := range trouble.random.Perm(3) {
			trouble.swap(c.at(i), binary)
			c.agree()
		}
		c.levelIs(oldLevel)
	}
	c.ask("the level is raised", func(ctx context.Context, caller *v1.Caller) error {
		_, err := caller.UpgradeCluster(ctx)
		return err
	})
	trouble.killLeader()
	c.ready()
	c.levelIs(newLevel)
	l.settle()
	c.agree()
	t.Log(c.report)
}

// swap starts a server with a binary, after it was ended in one of several ways.
func (t *trouble) swap(s *server, binary string) {
	lose, stopped := false, t.anyone()
	how := syscall.SIGTERM
	if t.random.IntN(2) == 0 {
		how, lose = syscall.SIGKILL, true
	}
	t.tell("%s gets another version, after %v", s.name, how)
	s.doom()
	s.signal(how)
	<-s.current().Ended()
	s.mu.Lock()
	s.binary = binary
	s.mu.Unlock()
	t.back(s, lose)
	if stopped != s {
		t.tell("stop %s", stopped.name)
		stopped.signal(syscall.SIGSTOP)
		t.lasts(t.between(100*time.Millisecond, 2*time.Second))
		stopped.signal(cont)
	}
	t.ready()
}

// levelIs wants all servers to be at a level.
func (c *cluster) levelIs(want uint64) {
	for _, s := range c.servers() {
		c.until(fmt.Sprintf("%s is at level %d", s.name, want), func() error {
			caller := c.direct(s)
			defer caller.CloseIdle()
			known, err := caller.Cluster(context.Background())
			if err == nil && known.Level != want {
				err = fmt.Errorf("it is at %d", known.Level)
			}
			return err
		})
	}
}
