//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
)

// A syncedFS is a file system that knows what would be left of it if the power
// failed now: of each file what it held at its last fsync, of each directory the
// names at its last fsync. As ext4 and xfs do, it keeps the name of a file that was
// synced itself. Whatever was written otherwise is gone.
type syncedFS struct {
	backing string
	ignore  func(path string, dir bool) bool // syncs that are left out
	trouble atomic.Pointer[trouble]          // what a sync meets

	mu      sync.Mutex // guards what follows
	content map[uint64][]byte
	names   map[uint64]map[string]uint64
}

// A trouble is what the syncs of files of a kind meet.
type trouble struct {
	suffix string
	sync   func() error
}

type syncedNode struct {
	fs.LoopbackNode
	fsys *syncedFS
}

type syncedDir struct {
	fs.FileHandle
	fs.FileReaddirenter
	fs.FileReleasedirer
	node *syncedNode
}

// mountSynced mounts a new one; it leaves the test out where that is not possible.
func mountSynced(t *testing.T, ignore func(path string, dir bool) bool) (string, *syncedFS) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("left out: loss of unsynced bytes needs /dev/fuse and root")
	}
	f := &syncedFS{backing: t.TempDir(), ignore: ignore, content: map[uint64][]byte{}, names: map[uint64]map[string]uint64{}}
	data := &fs.LoopbackRoot{Path: f.backing}
	data.NewNode = func(r *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &syncedNode{fs.LoopbackNode{RootData: r}, f}
	}
	root := &syncedNode{fs.LoopbackNode{RootData: data}, f}
	data.RootNode = root
	mount := t.TempDir()
	second := time.Second
	server, err := fs.Mount(mount, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "synced", Name: "synced"}, EntryTimeout: &second, AttrTimeout: &second,
	})
	if err != nil {
		t.Skipf("left out: loss of unsynced bytes needs a fuse mount: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return mount, f
}

func (n *syncedNode) path() string { return n.Path(n.Root()) }

func (n *syncedNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return fs.ToErrno(n.fsys.syncFile(n.path()))
}

func (n *syncedNode) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	handle, f, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &syncedDir{handle, handle.(fs.FileReaddirenter), handle.(fs.FileReleasedirer), n}, f, 0
}

func (d *syncedDir) Fsyncdir(context.Context, uint32) syscall.Errno {
	return fs.ToErrno(d.node.fsys.syncDir(d.node.path()))
}

func (f *syncedFS) inode(path string) (uint64, error) {
	var st syscall.Stat_t
	err := syscall.Stat(filepath.Join(f.backing, path), &st)
	return st.Ino, err
}

// syncFile makes what a file holds durable, and its name.
func (f *syncedFS) syncFile(path string) error {
	if f.ignore != nil && f.ignore(path, false) {
		return nil
	}
	if trouble := f.trouble.Load(); trouble != nil && strings.HasSuffix(path, trouble.suffix) {
		if err := trouble.sync(); err != nil {
			return err
		}
	}
	bytes, err := os.ReadFile(filepath.Join(f.backing, path))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ino, err := f.inode(path)
	if err != nil {
		return err
	}
	f.content[ino] = bytes
	return f.link(path, ino)
}

// link makes the name of a file durable, and those of the directories above it.
func (f *syncedFS) link(path string, ino uint64) error {
	for path != "." && path != "" {
		dir := filepath.Dir(path)
		parent, err := f.inode(dir)
		if err != nil {
			return err
		}
		if f.names[parent] == nil {
			f.names[parent] = map[string]uint64{}
		}
		f.names[parent][filepath.Base(path)] = ino
		path, ino = dir, parent
	}
	return nil
}

// syncDir makes the names in a directory durable as they are.
func (f *syncedFS) syncDir(path string) error {
	if f.ignore != nil && f.ignore(path, true) {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(f.backing, path))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ino, err := f.inode(path)
	if err != nil {
		return err
	}
	f.names[ino] = map[string]uint64{}
	for _, e := range entries {
		child, err := f.inode(filepath.Join(path, e.Name()))
		if err != nil {
			continue // removed meanwhile
		}
		f.names[ino][e.Name()] = child
		if e.IsDir() && f.names[child] == nil {
			f.names[child] = map[string]uint64{}
		}
	}
	return f.link(path, ino)
}

// image writes what a power failure would leave to a directory.
func (f *syncedFS) image(t *testing.T, to string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	root, err := f.inode("")
	if err == nil {
		err = f.copy(root, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (f *syncedFS) copy(dir uint64, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for name, ino := range f.names[dir] {
		path := filepath.Join(to, name)
		var err error
		if f.names[ino] != nil {
			err = f.copy(ino, path)
		} else {
			err = os.WriteFile(path, f.content[ino], 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// losses runs a server, and after each answer looks at what a power failure would
// leave. It returns the first thing that was answered and is not there.
func losses(t *testing.T, ignore func(path string, dir bool) bool) (lost error) {
	mount, fsys := mountSynced(t, ignore)
	e, err := Start(t.Context(), Config{Dir: filepath.Join(mount, "data"), SegmentBytes: testSegment, SnapshotEvery: 200 << 10})
	if err != nil {
		return err
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if n := e.node.Statistics().Snapshots; lost == nil && n < 2 {
			t.Errorf("only %d snapshots were taken", n)
		}
	}()
	label := leasehold.Labels{{Key: "k", Value: strings.Repeat("v", 4000)}}
	held := 0
	for i := range 400 {
		id := fmt.Sprint("id", i)
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: id, ID: id, Holder: "h", TTL: time.Hour, Labels: label})
		held++
		if i%2 == 0 {
			mustDo(t, e, &core.Release{Namespace: "default", ID: id})
			held--
		}
		if i%8 > 1 && i > 16 {
			continue // looking takes longer than doing
		}
		image := filepath.Join(t.TempDir(), "image")
		fsys.image(t, image)
		report, err := Check(filepath.Join(image, "data"))
		if err != nil {
			return fmt.Errorf("after %d: %w", i, err)
		}
		if report.Counts.Leases != held {
			return fmt.Errorf("after %d: %d leases were answered, %d are there", i, held, report.Counts.Leases)
		}
		if err := os.RemoveAll(image); err != nil {
			t.Fatal(err)
		}
	}
	return nil
}

func TestNothingAnsweredIsLostWithTheUnsyncedBytes(t *testing.T) {
	if err := losses(t, nil); err != nil {
		t.Fatal(err)
	}
}

// Without any one of the syncs, the test above must fail: it would not be worth
// much otherwise. (The sync of the log's directory is etcd's and is not among them:
// on this file system the next write to a new file keeps its name too.)
func TestEachSyncIsNeeded(t *testing.T) {
	for name, ignore := range map[string]func(path string, dir bool) bool{
		"of the log": func(path string, dir bool) bool {
			return !dir && strings.HasSuffix(path, ".wal")
		},
		"of a snapshot": func(path string, dir bool) bool { return !dir && strings.Contains(path, "/"+snapDir+"/") },
		"of the snapshots' directory": func(path string, dir bool) bool {
			return dir && strings.HasSuffix(path, snapDir)
		},
		"of the format file": func(path string, dir bool) bool { return !dir && strings.Contains(path, formatFile) },
		"of the directory":   func(path string, dir bool) bool { return dir && path == "data" },
	} {
		t.Run(name, func(t *testing.T) {
			err := losses(t, ignore)
			if err == nil {
				t.Error("nothing was lost without it")
			}
			t.Log(err)
		})
	}
}

// troubled runs a server whose disk gets into trouble after one lease, and checks
// that nothing is acknowledged from then on and that the lease is not lost.
func troubled(t *testing.T, sync func() error, over func()) {
	mount, fsys := mountSynced(t, nil)
	e, err := Start(t.Context(), Config{Dir: filepath.Join(mount, "data"), SegmentBytes: testSegment})
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, e, "before")
	fsys.trouble.Store(&trouble{".wal", sync})
	if _, err := e.Do(t.Context(), lease("during", time.Hour)); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("in flight: %v", err)
	}
	<-e.Failed()
	if _, err := e.Do(t.Context(), lease("after", time.Hour)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("afterwards: %v", err)
	}
	image := filepath.Join(t.TempDir(), "image")
	fsys.image(t, image)
	over()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	fsys.trouble.Store(nil)
	if err := e.disk.log.Close(); err != nil { // what the end of the process does
		t.Log(err)
	}
	report, err := Check(filepath.Join(image, "data"))
	if err != nil || report.Counts.Leases < 1 {
		t.Errorf("%d leases are left, %v", report.Counts.Leases, err)
	}
}

func TestASyncThatFailsStopsTheServer(t *testing.T) {
	troubled(t, func() error { return syscall.EIO }, func() {})
}

func TestASyncThatHangsStopsTheServer(t *testing.T) {
	hang := make(chan struct{})
	troubled(t, func() error { <-hang; return nil }, func() { close(hang) })
}

// linesLost is as losses, for the journal: after each answer it starts a server on what
// a power failure would leave, and returns the first line that this one's journal lacks
// or has twice.
func linesLost(t *testing.T, ignore func(path string, dir bool) bool) (lost error) {
	mount, fsys := mountSynced(t, ignore)
	c := Config{SegmentBytes: testSegment, SnapshotEvery: 50 << 10, JournalBytes: audit.MinBytes}
	c.Dir = filepath.Join(mount, "data")
	e, err := Start(t.Context(), c)
	if err != nil {
		return err
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if n := e.node.Statistics().Snapshots; lost == nil && n < 4 {
			t.Errorf("only %d snapshots were taken", n)
		}
	}()
	reason := strings.Repeat("r", 1000)
	for i := range 300 {
		id := fmt.Sprint("id", i)
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: id, ID: id, Holder: "h", TTL: time.Hour, Reason: reason})
		mustDo(t, e, &core.Release{Namespace: "default", ID: id})
		if i%20 > 0 && i > 12 {
			continue
		}
		image := t.TempDir()
		fsys.image(t, image)
		c.Dir = filepath.Join(image, "data")
		if err := hasLines(t, c, i+1); err != nil {
			return fmt.Errorf("after %d: %w", i, err)
		}
	}
	return nil
}

// hasLines tells whether a server finds a line for each of so many leases and releases.
func hasLines(t *testing.T, c Config, leases int) (err error) {
	e, err := Start(t.Context(), c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for verb, kind := range map[string]audit.Kind{"acquire": audit.Deed, "release": audit.Deed, "": audit.Hold} {
		page, err := e.Journal().Find(t.Context(), audit.Query{Kind: kind, Namespace: "default", Verb: verb, Oldest: true, Limit: 1000})
		if err != nil {
			return err
		}
		for i, l := range page.Lines {
			if want := fmt.Sprint("id", i); l.ID != want {
				return fmt.Errorf("where %s %s should be there is %s", verb, want, l.ID)
			}
		}
		if len(page.Lines) != leases {
			return fmt.Errorf("%d of %d lines of %q are there", len(page.Lines), leases, verb)
		}
	}
	return nil
}

func TestNoLineIsLostWithTheUnsyncedBytes(t *testing.T) {
	if err := linesLost(t, nil); err != nil {
		t.Fatal(err)
	}
}

func TestTheSyncOfTheJournalIsNeeded(t *testing.T) {
	err := linesLost(t, func(path string, dir bool) bool { return !dir && strings.Contains(path, "/"+journalDir+"/") })
	if err == nil {
		t.Error("nothing was lost without it")
	}
	t.Log(err)
}

// journalTroubled runs a server whose journal gets into trouble, and checks that it
// stops, says so, and has lost nothing.
func journalTroubled(t *testing.T, sync func() error, over func()) {
	mount, fsys := mountSynced(t, nil)
	c := Config{Dir: filepath.Join(mount, "data"), SegmentBytes: testSegment, JournalBytes: audit.MinBytes}
	e, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	fsys.trouble.Store(&trouble{".journal", sync})
	mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "id0", ID: "id0", Holder: "h", TTL: time.Hour})
	mustDo(t, e, &core.Release{Namespace: "default", ID: "id0"})
	<-e.Failed()
	if err := e.Failure(); !strings.Contains(err.Error(), "the journal can not be written") {
		t.Error(err)
	}
	if _, err := e.Do(t.Context(), lease("after", time.Hour)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("afterwards: %v", err)
	}
	image := t.TempDir()
	fsys.image(t, image)
	over()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	fsys.trouble.Store(nil)
	e.workers.Wait()                           // the log's disk is well
	if err := e.disk.log.Close(); err != nil { // what the end of the process does
		t.Log(err)
	}
	c.Dir = filepath.Join(image, "data")
	if err := hasLines(t, c, 1); err != nil {
		t.Error(err)
	}
}

func TestAJournalThatFailsStopsTheServer(t *testing.T) {
	journalTroubled(t, func() error { return syscall.EIO }, func() {})
}

func TestAJournalThatHangsStopsTheServer(t *testing.T) {
	hang := make(chan struct{})
	journalTroubled(t, func() error { <-hang; return nil }, func() { close(hang) })
}
