package faultfs

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// A durable is what a power failure leaves of a file.
type durable struct {
	file  *os.File // below; it keeps the number of the inode from being used again
	bytes []byte   // at the last sync
	dirty []extent // written since
}

// An extent is a part of a file.
type extent struct{ from, to int64 }

// toTheEnd is the end of an extent that goes as far as the file does.
const toTheEnd = int64(1) << 62

// wrote notes that a part of a file is not what was synced.
func (f *FS) wrote(path string, from, to int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, _, err := f.durable(path)
	if err != nil {
		return // it was removed: nothing will be left of it
	}
	if n := len(d.dirty); n > 0 && d.dirty[n-1].to == from {
		d.dirty[n-1].to = to // one after the other, as a log is written
		return
	}
	d.dirty = append(d.dirty, extent{from, to})
}

// durable finds what is left of a file, which is nothing at first.
func (f *FS) durable(path string) (*durable, uint64, error) {
	st, err := f.stat(path)
	if err != nil {
		return nil, 0, err
	}
	d := f.files[st.Ino]
	if d == nil {
		file, err := os.Open(filepath.Join(f.backing, path))
		if err != nil {
			return nil, 0, err
		}
		d = &durable{file: file, dirty: []extent{{0, toTheEnd}}}
		f.files[st.Ino] = d
	}
	return d, st.Ino, nil
}

func (f *FS) forget(ino uint64) {
	_ = f.files[ino].file.Close()
	delete(f.files, ino)
}

// sync makes what was written durable.
func (d *durable) sync() error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if more := size - int64(len(d.bytes)); more > 0 {
		d.bytes = append(d.bytes, make([]byte, more)...)
	}
	d.bytes = d.bytes[:size]
	for _, e := range d.dirty {
		if e.to = min(e.to, size); e.from >= e.to {
			continue
		}
		if _, err := d.file.ReadAt(d.bytes[e.from:e.to], e.from); err != nil && err != io.EOF {
			return err
		}
	}
	d.dirty = nil
	return nil
}

// syncFile makes what a file holds durable, and its name.
func (f *FS) syncFile(path string) error {
	if err := f.meet(path, false); err != nil {
		return unlessIgnored(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ino, err := f.durable(path)
	if err != nil {
		return err
	}
	if err := d.sync(); err != nil {
		return err
	}
	return f.link(path, ino)
}

func unlessIgnored(err error) error {
	if err == ErrIgnored {
		return nil
	}
	return err
}

// link makes the name of a file durable, and those of the directories above it.
func (f *FS) link(path string, ino uint64) error {
	for path != "." && path != "" {
		dir := filepath.Dir(path)
		st, err := f.stat(dir)
		if err != nil {
			return err
		}
		if f.names[st.Ino] == nil {
			f.names[st.Ino] = map[string]uint64{}
		}
		f.names[st.Ino][filepath.Base(path)] = ino
		path, ino = dir, st.Ino
	}
	return nil
}

// syncDir makes the names in a directory durable as they are.
func (f *FS) syncDir(path string) error {
	if err := f.meet(path, true); err != nil {
		return unlessIgnored(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keepNames(path)
}

func (f *FS) keepNames(path string) error {
	entries, err := os.ReadDir(filepath.Join(f.backing, path))
	if err != nil {
		return err
	}
	dir, err := f.stat(path)
	if err != nil {
		return err
	}
	names := map[string]uint64{}
	for _, e := range entries {
		st, err := f.stat(filepath.Join(path, e.Name()))
		if err != nil {
			continue // removed meanwhile
		}
		names[e.Name()] = st.Ino
		if e.IsDir() && f.names[st.Ino] == nil {
			f.names[st.Ino] = map[string]uint64{}
		}
	}
	f.names[dir.Ino] = names
	f.collect()
	return f.link(path, dir.Ino)
}

// collect forgets files that have no name left, neither durable nor now.
func (f *FS) collect() {
	named := map[uint64]bool{}
	for _, names := range f.names {
		for _, ino := range names {
			named[ino] = true
		}
	}
	for ino, d := range f.files {
		var st syscall.Stat_t
		if err := syscall.Fstat(int(d.file.Fd()), &st); err == nil && st.Nlink == 0 && !named[ino] {
			f.forget(ino)
		}
	}
}

// keepAll makes everything durable that is in a directory.
func (f *FS) keepAll(path string) error {
	entries, err := os.ReadDir(filepath.Join(f.backing, path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := filepath.Join(path, e.Name())
		if e.IsDir() {
			err = f.keepAll(below)
		} else {
			err = f.syncFile(below)
		}
		if err != nil {
			return err
		}
	}
	return f.keepNames(path)
}

// Image writes what a power failure would leave now to a directory.
func (f *FS) Image(to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	root, err := f.stat("")
	if err != nil {
		return err
	}
	return f.copy(root.Ino, to)
}

func (f *FS) copy(dir uint64, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for name, ino := range f.names[dir] {
		path := filepath.Join(to, name)
		var err error
		if f.names[ino] != nil {
			err = f.copy(ino, path)
		} else {
			err = os.WriteFile(path, f.bytes(ino), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bytes is empty for a file whose name is durable and which was never synced itself.
func (f *FS) bytes(ino uint64) []byte {
	if d := f.files[ino]; d != nil {
		return d.bytes
	}
	return nil
}
