package socket

import (
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (*Socket, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close() })
	return New(here).(*Socket), there
}

// echo has something go there and back.
func echo(t *testing.T, here, there net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(there, text); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	if _, err := io.ReadFull(here, b); err != nil || string(b) != text {
		t.Fatalf("%q came, %v", b, err)
	}
	if _, err := here.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(there, b); err != nil || string(b) != text {
		t.Fatalf("%q came back, %v", b, err)
	}
}

// A connection goes on after it was detached, as often as one likes, and loses nothing that came meanwhile.
func TestDetachAndAttach(t *testing.T) {
	here, there := pair(t)
	echo(t, here, there, "before")
	for range 3 {
		fd, err := here.Detach()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := here.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read of a detached socket says %v", err)
		}
		if here.RemoteAddr().String() != there.LocalAddr().String() {
			t.Error("the address is gone")
		}
		if _, err := unix.Read(fd, make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("a read of the descriptor says %v", err)
		}
		if _, err := unix.Write(fd, []byte("detached")); err != nil {
			t.Error(err)
		}
		b := make([]byte, len("detached"))
		if _, err := io.ReadFull(there, b); err != nil {
			t.Error(err)
		}
		if err := here.Attach(); err != nil {
			t.Fatal(err)
		}
		echo(t, here, there, "after")
	}
	_ = here.Close()
	if n, err := there.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the end, %d bytes, %v", n, err)
	}
}

// Closing a detached socket ends the connection, and its descriptor stays valid until Attach.
func TestCloseWhileDetached(t *testing.T) {
	here, there := pair(t)
	fd, err := here.Detach()
	if err != nil {
		t.Fatal(err)
	}
	if err := here.Close(); err != nil {
		t.Error(err)
	}
	if n, err := there.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := unix.Read(fd, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("the descriptor says %d, %v, want the end", n, err)
	}
	if err := here.Attach(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Attach says %v", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
		t.Errorf("the descriptor is still open: %v", err)
	}
	if _, err := here.Detach(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Detach says %v", err)
	}
}

// A connection that its client resets while it is detached still has its addresses.
func TestAddressesAfterAReset(t *testing.T) {
	here, there := pair(t)
	if _, err := here.Detach(); err != nil {
		t.Fatal(err)
	}
	want := there.LocalAddr().String()
	_ = there.(*net.TCPConn).SetLinger(0)
	_ = there.Close()
	for {
		if _, err := unix.Getpeername(here.fd); err != nil {
			break // the reset has come
		}
	}
	if err := here.Attach(); err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if from := here.RemoteAddr(); from == nil || from.String() != want {
		t.Errorf("it comes from %v, want %s", from, want)
	}
}

// A connection comes back although the process has as many descriptors as it may have.
func TestAttachWithoutAFreeDescriptor(t *testing.T) {
	here, there := pair(t)
	for range 2 { // the reserve is filled again
		if _, err := here.Detach(); err != nil {
			t.Fatal(err)
		}
		restore := useUpDescriptors(t)
		err := here.Attach()
		restore()
		if err != nil {
			t.Fatal(err)
		}
		echo(t, here, there, "after")
	}
}

// useUpDescriptors lets the process open nothing more until the function that it returns is called.
func useUpDescriptors(t *testing.T) (restore func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = min(before.Cur, 256)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var used []int
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		used = append(used, fd)
	}
	return func() {
		for _, fd := range used {
			_ = unix.Close(fd)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}
}
