package faultfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// ErrIgnored is returned by what OnSync was given to leave a sync out: the caller is told
// that all is well, and nothing is durable.
var ErrIgnored = errors.New("the sync is left out")

// Available reports whether there can be such a file system here, or why not.
func Available() error {
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		return errors.New("a disk that fails needs /dev/fuse and root")
	}
	return nil
}

// An FS is a file system that is mounted.
type FS struct {
	backing string
	server  *fuse.Server

	mu      sync.Mutex // guards what follows
	onSync  func(path string, dir bool) error
	limited bool
	room    int64 // if limited: how many bytes there is room for
	files   map[uint64]*durable
	names   map[uint64]map[string]uint64 // of each directory, when it was synced
}

// Mount lays a file system over a directory. What is there already counts as durable.
func Mount(backing, at string) (*FS, error) {
	f := &FS{backing: backing, files: map[uint64]*durable{}, names: map[uint64]map[string]uint64{}}
	if err := f.keepAll(""); err != nil {
		return nil, err
	}
	data := &fs.LoopbackRoot{Path: backing}
	//lint:ignore SA1019 what is to be used instead gets a node that is made already, and ours has to be made with it
	data.NewNode = func(r *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &node{fs.LoopbackNode{RootData: r}, f}
	}
	root := &node{fs.LoopbackNode{RootData: data}, f}
	data.RootNode = root
	second := time.Second
	// A child that had the device open would keep itself, and whoever else waits for an
	// answer, waiting for ever when this process ends.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var err error
	f.server, err = fs.Mount(at, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "faultfs", Name: "faultfs"},
		EntryTimeout: &second, AttrTimeout: &second,
	})
	if err != nil {
		return nil, fmt.Errorf("a disk that fails needs a fuse mount: %w", err)
	}
	return f, keepFromChildren()
}

// keepFromChildren closes the device in whatever this process starts, which go-fuse
// leaves open.
func keepFromChildren() error {
	open, err := os.ReadDir("/proc/self/fd")
	for _, e := range open {
		if target, _ := os.Readlink("/proc/self/fd/" + e.Name()); target != "/dev/fuse" {
			continue
		}
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}

// Unmount takes the file system away. Nobody may use it afterwards.
func (f *FS) Unmount() error {
	err := f.server.Unmount()
	f.mu.Lock()
	defer f.mu.Unlock()
	for ino := range f.files {
		f.forget(ino)
	}
	return err
}

// OnSync has a function called before each sync, with the path of what is synced: the
// sync takes as long as the function, and fails if it does. nil: all is well.
func (f *FS) OnSync(do func(path string, dir bool) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onSync = do
}

// SetRoom says how many more bytes there is room for. What needs more fails as on a full
// disk, and statfs tells.
func (f *FS) SetRoom(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limited, f.room = true, bytes
}

// Unlimit gives back as much room as the disk has.
func (f *FS) Unlimit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limited = false
}

// take uses up room for more bytes; a negative number gives room back.
func (f *FS) take(bytes int64) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limited && bytes > max(0, f.room) {
		return syscall.ENOSPC
	}
	f.room -= bytes
	return 0
}

// left is how many bytes there is room for, if that is limited.
func (f *FS) left() (bytes int64, limited bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, f.room), f.limited
}

// meet asks what a sync meets.
func (f *FS) meet(path string, dir bool) error {
	f.mu.Lock()
	do := f.onSync
	f.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(path, dir)
}

func (f *FS) stat(path string) (st syscall.Stat_t, err error) {
	err = syscall.Stat(filepath.Join(f.backing, path), &st)
	return st, err
}
