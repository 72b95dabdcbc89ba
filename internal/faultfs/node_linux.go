package faultfs

import (
	"context"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A node is a file or a directory. What it does not say itself goes to what lies below.
type node struct {
	fs.LoopbackNode
	fsys *FS
}

// A handle is an open file. The kernel must not go past us to the file below, as it could
// for speed.
type handle struct{ *fs.LoopbackFile }

func (handle) PassthroughFd() (int, bool) { return 0, false }

// A dirHandle is an open directory.
type dirHandle struct {
	fs.FileHandle
	fs.FileReaddirenter
	fs.FileReleasedirer
	node *node
}

func (n *node) path() string { return n.Path(n.Root()) }

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	below, flags, errno := n.LoopbackNode.Open(ctx, flags)
	return wrap(below), flags, errno
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32,
	out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, below, flags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, wrap(below), flags, errno
}

func wrap(below fs.FileHandle) fs.FileHandle {
	if file, ok := below.(*fs.LoopbackFile); ok {
		return handle{file}
	}
	return below
}

func (n *node) Write(ctx context.Context, f fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	end := off + int64(len(data))
	if errno := n.grow(end); errno != 0 {
		return 0, errno
	}
	written, errno := f.(handle).Write(ctx, data, off)
	// Afterwards: a sync in between does not count for it.
	n.fsys.wrote(n.path(), off, end)
	return written, errno
}

func (n *node) Allocate(ctx context.Context, f fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	end := int64(off + size)
	if errno := n.grow(end); errno != 0 {
		return errno
	}
	errno := f.(handle).Allocate(ctx, off, size, mode)
	n.fsys.wrote(n.path(), int64(off), end)
	return errno
}

// grow takes the room that a file needs beyond its end.
func (n *node) grow(end int64) syscall.Errno {
	st, err := n.fsys.stat(n.path())
	if err != nil {
		return 0 // it was removed, and is still written to
	}
	return n.fsys.take(max(0, end-st.Size))
}

func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	size, resized := in.GetSize()
	st, err := n.fsys.stat(n.path())
	if !resized || err != nil {
		return n.LoopbackNode.Setattr(ctx, f, in, out)
	}
	if errno := n.fsys.take(int64(size) - st.Size); errno != 0 {
		return errno
	}
	errno := n.LoopbackNode.Setattr(ctx, f, in, out)
	n.fsys.wrote(n.path(), min(int64(size), st.Size), toTheEnd)
	return errno
}

// CopyFileRange is refused, so that callers read and write instead.
func (n *node) CopyFileRange(context.Context, fs.FileHandle, uint64, *fs.Inode, fs.FileHandle, uint64, uint64,
	uint64) (uint32, syscall.Errno) {
	return 0, syscall.ENOTSUP
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	st, err := n.fsys.stat(filepath.Join(n.path(), name))
	errno := n.LoopbackNode.Unlink(ctx, name)
	if err == nil && errno == 0 {
		n.fsys.take(-st.Size)
	}
	return errno
}

func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	errno := n.LoopbackNode.Statfs(ctx, out)
	if left, limited := n.fsys.left(); errno == 0 && limited {
		out.Bfree = min(out.Bfree, uint64(left)/uint64(out.Bsize))
		out.Bavail = min(out.Bavail, out.Bfree)
	}
	return errno
}

func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return fs.ToErrno(n.fsys.syncFile(n.path()))
}

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	below, f, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &dirHandle{below, below.(fs.FileReaddirenter), below.(fs.FileReleasedirer), n}, f, 0
}

func (d *dirHandle) Fsyncdir(context.Context, uint32) syscall.Errno {
	return fs.ToErrno(d.node.fsys.syncDir(d.node.path()))
}
