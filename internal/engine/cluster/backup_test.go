package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

const base = leasehold.Token(1 << 40)

// backedUp takes a backup into a file.
func backUp(t *testing.T, e *Engine) (string, error) {
	name := filepath.Join(t.TempDir(), "backup")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	return name, errors.Join(e.Backup(t.Context(), f), f.Close())
}

func backedUp(t *testing.T, e *Engine) string {
	t.Helper()
	name, err := backUp(t, e)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func restoreTo(t *testing.T, backup string, o storage.RestoreOptions) (string, storage.RestoredTo) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deep", "data")
	to, err := storage.RestoreTo(dir, backup, o)
	if err != nil {
		t.Fatal(err)
	}
	return dir, to
}

// furnish puts one of each in a cluster.
func furnish(t *testing.T, e *Engine) {
	mustDo(t, e, &core.OpenSession{Namespace: "default", ID: "s", TTL: 20 * time.Second})
	mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "a", ID: "a1", Holder: "ann", Session: "s"})
	mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "b", ID: "b1", Holder: "ann", TTL: 30 * time.Second})
	mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "b", ID: "b2", Holder: "bob", Session: "s", Wait: time.Hour})
	mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "motd", Value: "hello"})
}

func find(t *testing.T, e *Engine, id string) core.Answer {
	t.Helper()
	var a core.Answer
	if err := e.Read(t.Context(), func(v core.View) { a = v.Claim("default", id) }); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRestore follows a cluster from its backup to another cluster, through its
// quarantine and a restart in the midst of it.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startAt(t, t.TempDir(), Config{})
		furnish(t, e)
		backup := backedUp(t, e)
		mustDo(t, e, &core.Release{Namespace: "default", ID: "b1"}) // bob has it, and then eve
		mustDo(t, e, &core.Release{Namespace: "default", ID: "b2"})
		after := mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "b", ID: "b3", Holder: "eve", TTL: 25 * time.Second}).Lease
		closed(t, e)
		time.Sleep(time.Hour)

		dir, to := restoreTo(t, backup, storage.RestoreOptions{Quarantine: -1})
		if to.State.Quarantine != 30*time.Second || to.Backup.Leases != 2 || to.Backup.Waiters != 1 || to.Backup.Records != 1 || to.Server < 2 || to.Cluster == to.Backup.Cluster {
			t.Errorf("restored: %+v", to)
		}
		if _, err := storage.Check(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // nothing ends while nobody serves

		e = startAt(t, dir, Config{Clock: newTestClock("boot"), JournalBytes: audit.MinBytes})
		if got := e.node.Roster(); got.Cluster != to.Cluster || len(got.Members) != 1 || got.Members[0].ID != to.Server || e.node.ID() != to.Server {
			t.Errorf("the cluster is %+v", got)
		}
		for _, id := range []string{"a1", "b1"} {
			if l := find(t, e, id).Lease; l == nil || l.Token > 2 || l.Remaining < 15*time.Second {
				t.Errorf("%s is not held as it was: %+v", id, l)
			}
		}
		if w := find(t, e, "b2").Waiter; w == nil || w.Position != 1 {
			t.Errorf("the waiter lost its place: %+v", w)
		}
		_, err := e.Do(t.Context(), &core.Acquire{Namespace: "default", Resource: "free", ID: "f1", Holder: "eve", TTL: time.Minute})
		if !errors.Is(err, leasehold.ErrHeld) || !strings.Contains(err.Error(), "restored from a backup") {
			t.Errorf("in quarantine: %v", err)
		}
		mustDo(t, e, &core.RenewSession{Namespace: "default", ID: "s"})
		mustDo(t, e, &core.Release{Namespace: "default", ID: "b1"})
		time.Sleep(10 * time.Second)
		closed(t, e)

		// A restart ends no quarantine, and begins none.
		clock := newTestClock("another boot")
		e = startAt(t, dir, Config{Clock: clock})
		mustDo(t, e, &core.RenewSession{Namespace: "default", ID: "s"})
		if w := find(t, e, "b2").Waiter; w == nil {
			t.Error("the waiter was granted in quarantine")
		}
		time.Sleep(19 * time.Second)
		mustDo(t, e, &core.RenewSession{Namespace: "default", ID: "s"})
		if w := find(t, e, "b2").Waiter; w == nil {
			t.Error("the waiter was granted in quarantine")
		}
		time.Sleep(2 * time.Second)
		l := find(t, e, "b2").Lease
		if l == nil || l.Token <= base || l.Token <= after.Token {
			t.Errorf("after the quarantine the waiter has %+v", l)
		}
		other := mustDo(t, e, &core.Acquire{Namespace: "unheard", Resource: "free", ID: "f1", Holder: "eve", TTL: time.Minute}).Lease
		if other.Token <= base {
			t.Errorf("a namespace that is not in the backup grants token %d", other.Token)
		}
		closed(t, e)
		if _, err := storage.Check(dir); err != nil {
			t.Error(err)
		}
	})
}

// TestWatchersAfterRestore goes through the feed, as the doors do.
func TestWatchersAfterRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startAt(t, t.TempDir(), Config{})
		furnish(t, e)
		backup := backedUp(t, e)
		history, _, _ := e.Feed().History("default")
		at := history.Revision
		closed(t, e)
		dir, _ := restoreTo(t, backup, storage.RestoreOptions{})
		e = startAt(t, dir, Config{})
		defer closed(t, e)
		for _, c := range []struct {
			namespace string
			revision  leasehold.Revision
			known     bool
		}{
			{"default", at, true}, {"default", at + 1, false}, {"default", leasehold.Revision(base) - 1, false}, {"default", leasehold.Revision(base), true},
			{"unheard", 3, false}, {"unheard", 0, true},
		} {
			history, _, _ := e.Feed().History(c.namespace)
			if _, known := history.After(c.revision, core.AllOf); known != c.known {
				t.Errorf("a watcher of %s at %d is told that all is known: %v", c.namespace, c.revision, known)
			}
		}
	})
}

// TestBackupUnderLoad takes backups while commands come: each has all that was answered
// before it was asked for, and contradicts itself nowhere.
func TestBackupUnderLoad(t *testing.T) {
	e := startAt(t, t.TempDir(), Config{Clock: SystemClock(), SnapshotEvery: 50 << 10})
	defer closed(t, e)
	var enough atomic.Bool
	var answered atomic.Int64
	var callers sync.WaitGroup
	defer callers.Wait()
	defer enough.Store(true)
	for c := range 4 {
		callers.Go(func() {
			for i := 0; !enough.Load(); i++ {
				id := fmt.Sprint(c, "-", i)
				mustDo(t, e, &core.Acquire{Namespace: "default", Resource: id, ID: id, Holder: "ann", TTL: time.Hour})
				if i%2 == 0 {
					mustDo(t, e, &core.Release{Namespace: "default", ID: id})
				}
				answered.Add(1)
			}
		})
	}
	for range 8 {
		known := answered.Load()
		var file bytes.Buffer
		if err := e.Backup(t.Context(), &file); err != nil {
			t.Fatal(err)
		}
		head, state, err := storage.ReadBackup(&file)
		if err != nil {
			t.Fatal(err)
		}
		if err := state.Check(); err != nil {
			t.Fatal(err)
		}
		n := state.View(0).Counts()
		if n.Leases != head.Leases || n.Resources != head.Resources || int64(n.Resources) < known {
			t.Fatalf("%d were answered before; the backup says %d resources and has %+v", known, head.Resources, n)
		}
	}
}

// A stuck reader takes nothing, until it is let go.
type stuck struct {
	begun chan struct{} // closed at the first write
	let   chan struct{}
	once  sync.Once
}

func (s *stuck) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.let
	return len(b), nil
}

func TestSlowReaderHoldsNobodyUp(t *testing.T) {
	e := startAt(t, t.TempDir(), Config{Clock: SystemClock()})
	defer closed(t, e)
	furnish(t, e)
	let := make(chan struct{})
	var readers sync.WaitGroup
	for range maxBackups {
		s := &stuck{begun: make(chan struct{}), let: let}
		readers.Go(func() {
			if err := e.Backup(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
		<-s.begun
	}
	for i := range 100 {
		mustDo(t, e, lease(fmt.Sprint("r", i), time.Minute))
	}
	if err := e.Backup(t.Context(), io.Discard); !errors.Is(err, leasehold.ErrLimited) {
		t.Errorf("one more backup: %v", err)
	}
	close(let)
	readers.Wait()
	if err := e.Backup(t.Context(), io.Discard); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Backup(gone, io.Discard); err == nil {
		t.Error("a backup for nobody was taken")
	}
}

// TestRestoredClusterGrows takes a backup of one of three servers, loses all of them, and
// makes a cluster of three again of it, while the quarantine lasts.
func TestRestoredClusterGrows(t *testing.T) {
	inVirtualTime(t, restoredClusterGrows)
}

func restoredClusterGrows(t *testing.T, old *site) {
	old.begin("n1", "n2", "n3")
	for i := range 20 {
		old.do(old.leader(), lease(fmt.Sprint("r", i), time.Hour))
	}
	var backup string
	old.retry(func() (err error) {
		backup, err = backUp(t, old.follower())
		return err
	})
	former := old.follower().network.dir.Cluster
	for _, name := range sortedKeys(old.engines) {
		old.stop(name)
	}
	for name, dir := range old.dirs {
		if report, err := storage.Check(dir); err != nil || report.Counts.Leases > 20 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}

	s := newSite(t, newWires())
	defer s.close()
	dir, to := restoreTo(t, backup, storage.RestoreOptions{Quarantine: time.Hour})
	if to.Server != 4 || to.Cluster == former || to.Backup.Cluster != former || to.Backup.Leases != 20 {
		t.Errorf("restored: %+v", to)
	}
	s.dirs["n1"] = dir
	first := s.mustStart("n1", Config{})
	s.await("its own address", func() bool { return first.network.current().Members[0].Peer != "" })
	for _, name := range []string{"n2", "n3"} {
		s.join(name, first)
	}
	s.await("three votes", func() bool { return len(s.leader().network.current().Voters()) == 3 })
	var sums engine.Sums
	s.retry(func() (err error) {
		sums, err = first.Sums(t.Context())
		return err
	})
	if len(sums.Of) != 3 || sums.Of[0].Hash == "" || sums.Of[1].Hash != sums.Of[0].Hash || sums.Of[2].Hash != sums.Of[0].Hash {
		t.Errorf("the servers do not know the same: %+v", sums)
	}
	s.stop("n1") // whoever leads next goes on with the quarantine
	for i := range 20 {
		if s.holds(s.leader(), fmt.Sprint("r", i)) != 1 {
			t.Fatalf("lease %d is gone", i)
		}
	}
	s.do(s.leader(), &core.Renew{Namespace: "default", ID: "id-r3"})
	s.retry(func() error {
		_, err := s.leader().Do(t.Context(), lease("new", time.Minute))
		if err == nil {
			t.Error("a lease was granted in quarantine")
		}
		if errors.Is(err, leasehold.ErrHeld) {
			return nil
		}
		return err
	})
}

// TestLargeValuesAreInTheBackup follows one to the restored cluster, which has nothing else.
func TestLargeValuesAreInTheBackup(t *testing.T) {
	e := startAt(t, t.TempDir(), Config{Clock: SystemClock()})
	text := strings.Repeat("a large value ", 300<<10)
	large, err := e.PutValue(t.Context(), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	small, err := e.PutValue(t.Context(), strings.NewReader("another"))
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "model", Large: &large})
	mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "other", Large: &small})
	backup := backedUp(t, e)
	closed(t, e)
	if _, _, err := storage.CheckBackup(backup); err != nil {
		t.Fatal(err)
	}
	dir, _ := restoreTo(t, backup, storage.RestoreOptions{})
	if _, err := storage.Check(dir); err != nil {
		t.Fatal(err)
	}
	e = startAt(t, dir, Config{Clock: SystemClock()})
	defer closed(t, e)
	r, err := e.OpenValue(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || string(b) != text {
		t.Errorf("%d bytes came back, %v", len(b), err)
	}

	b, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{len(b) / 4, len(b) / 2, len(b) - 40} {
		b[n] ^= 1
		if _, _, err := storage.ReadBackup(bytes.NewReader(b)); err == nil {
			t.Errorf("a backup with another byte %d of a large value was read", n)
		}
		b[n] ^= 1
	}
}
