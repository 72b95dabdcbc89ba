//go:build linux

package peer

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// echo is a server that returns every line and counts them.
func echo(t *testing.T) (address string, lines chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	lines = make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewScanner(c); in.Scan(); {
					lines <- in.Text()
					_, _ = io.WriteString(c, in.Text()+"\n")
				}
			}()
		}
	}()
	return l.Addr().String(), lines
}

// say sends a line and returns the answer, "" if there is none within a time.
func say(c net.Conn, line string, within time.Duration) string {
	_ = c.SetDeadline(time.Now().Add(within))
	_, _ = io.WriteString(c, line+"\n")
	answer, _ := bufio.NewReader(c).ReadString('\n')
	return answer
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// tryNew says something on a connection that may be reset at any moment.
func tryNew(address string) string {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return ""
	}
	defer c.Close()
	return say(c, "new", long)
}

const long, short = time.Minute, 50 * time.Millisecond

func TestProxy(t *testing.T) {
	target, lines := echo(t)
	p := StartProxy(t, target)
	c := dial(t, p.Address)
	if got := say(c, "a", long); got != "a\n" || <-lines != "a" {
		t.Fatalf("the answer is %q", got)
	}

	p.Hang()
	late := dial(t, p.Address)
	if got := say(c, "b", short) + say(late, "c", short); got != "" || len(lines) != 0 {
		t.Errorf("while it hangs the answer is %q", got)
	}
	p.Forward()
	if got := <-lines + <-lines; got != "bc" && got != "cb" {
		t.Errorf("what was held arrives as %q", got)
	}
	if got := say(c, "", long); got != "b\n" {
		t.Errorf("the late answer is %q", got)
	}
	<-lines

	p.Delay(2 * short)
	begin := time.Now()
	if got := say(c, "d", long); got != "\n" && got != "d\n" || time.Since(begin) < 2*short {
		t.Errorf("the delayed answer is %q after %v", got, time.Since(begin))
	}
	<-lines

	p.DropReplies()
	c = dial(t, p.Address)
	if got := say(c, "e", short); got != "" || <-lines != "e" {
		t.Errorf("an answer that should be lost is %q", got)
	}
	p.Forward()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that lost an answer goes on")
	}
}

func TestProxyCuts(t *testing.T) {
	target, lines := echo(t)
	p := StartProxy(t, "127.0.0.1:1")
	if got := tryNew(p.Address); got != "" {
		t.Errorf("nobody answers %q", got)
	}
	p.Redirect(target)
	c := dial(t, p.Address)
	if got := say(c, "a", long); got != "a\n" || <-lines != "a" {
		t.Fatalf("the answer is %q", got)
	}
	p.Cut()
	if got := say(c, "b", long); got != "" || len(lines) != 0 {
		t.Errorf("after the cut the answer is %q", got)
	}
	if got := tryNew(p.Address); got != "" || len(lines) != 0 {
		t.Errorf("after the cut a new connection gets %q", got)
	}
	p.Forward()
	if got := say(dial(t, p.Address), "c", long); got != "c\n" {
		t.Errorf("after the cut is over the answer is %q", got)
	}
}

func TestProxyForgetsConnections(t *testing.T) {
	address, lines := echo(t)
	p := StartProxy(t, address)
	old := dial(t, p.Address)
	if got := say(old, "before", time.Second); got != "before\n" {
		t.Fatalf("before: %q", got)
	}
	p.Forget()
	if got := say(old, "lost", 100*time.Millisecond); got != "" {
		t.Errorf("on the old connection: %q", got)
	}
	if got := say(dial(t, p.Address), "after", time.Second); got != "after\n" {
		t.Errorf("on a new connection: %q", got)
	}
	if first, second := <-lines, <-lines; first != "before" || second != "after" {
		t.Errorf("the server heard %q and %q", first, second)
	}
}
