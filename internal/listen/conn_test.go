package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// What is collected leaves in one write, and what is not at once.
func TestConnCollects(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	c := &Conn{Conn: here}
	defer c.Close()
	go func() {
		_, _ = io.WriteString(c, "at once")
		c.Collect(nil)
		_, _ = io.WriteString(c, "in one ")
		_, _ = io.WriteString(c, "piece")
		_, _ = c.Send()
		_, _ = io.WriteString(c, "again")
	}()
	b := make([]byte, 100)
	for _, want := range []string{"at once", "in one piece", "again"} {
		n, err := there.Read(b) // a pipe hands over one write at a time
		if got := string(b[:n]); err != nil || got != want {
			t.Fatalf("there is %q, %v, want %q", got, err, want)
		}
	}
}

// Behind half a batch nothing may follow: it would be taken for the other half.
func TestConnEndsAfterAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := &Conn{Conn: here}
		read := make(chan string)
		go func() {
			b := make([]byte, 4)
			n, _ := there.Read(b)
			time.Sleep(time.Minute)
			rest, _ := io.ReadAll(there)
			read <- string(b[:n]) + string(rest)
		}()
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		c.Collect(nil)
		_, _ = io.WriteString(c, "half of it")
		if _, err := c.Send(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		_ = c.SetWriteDeadline(time.Time{})
		if _, err := io.WriteString(c, "0\r\n\r\n"); err == nil {
			t.Error("something follows")
		}
		if got := <-read; got != "half" {
			t.Errorf("%q was read", got)
		}
	})
}
