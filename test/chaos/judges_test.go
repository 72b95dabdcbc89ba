//go:build linux

package chaos

import (
	"io"
	"net"
	"os"
	"testing"
	"time"
)

const second = time.Second

// found are the kinds of violations that a history has.
func found(h *history) map[kind]int {
	r := newReport(func(string, ...any) {})
	h.check(r)
	return r.kinds()
}

func TestJudgesOfRecords(t *testing.T) {
	put := func(value string, revision uint64, from, to time.Duration) *recordCall {
		return &recordCall{key: "k", write: value, revision: revision, called: from, returned: to}
	}
	get := func(value string, revision uint64, from, to time.Duration) *recordCall {
		return &recordCall{key: "k", seen: value, revision: revision, called: from, returned: to}
	}
	swap := func(expect, value string, swapped bool, seen string, from, to time.Duration) *recordCall {
		return &recordCall{key: "k", swap: true, expect: expect, write: value, swapped: swapped, seen: seen, called: from, returned: to}
	}
	last := get("a", 1, 5*second, 6*second)
	last.final = true
	for _, c := range []struct {
		name  string
		calls []*recordCall
		want  kind // empty: all is well
	}{
		{"one after the other", []*recordCall{put("a", 1, 1, 2), get("a", 1, 3, 4), swap("a", "b", true, "", 5, 6), swap("a", "c", false, "b", 7, 8), get("b", 2, 9, 10)}, ""},
		{"at the same time", []*recordCall{put("a", 1, 1, 10), put("b", 2, 1, 10), get("b", 2, 11, 12)}, ""},
		{"no answer, and it happened", []*recordCall{put("a", 0, 1, never), get("a", 1, 3, 4)}, ""},
		{"no answer, and it happened late", []*recordCall{put("a", 0, 1, never), get("", 0, 3, 4), get("a", 1, 5, 6)}, ""},
		{"no answer, and it did not happen", []*recordCall{put("a", 0, 1, never), get("", 0, 3, 4)}, ""},
		{"swaps without an answer, one on the other", []*recordCall{swap("", "a", false, "", 1, never), swap("a", "b", false, "", 2, never), get("b", 2, 3, 4)}, ""},
		{"a stale read", []*recordCall{put("a", 1, 1, 2), put("b", 2, 3, 4), get("a", 1, 5, 6)}, staleRead},
		{"a read of the beginning", []*recordCall{put("a", 1, 1, 2), get("", 0, 3, 4)}, staleRead},
		{"a lost write", []*recordCall{put("a", 1, 1, 2), put("b", 2, 3*second, 4*second), last}, lostWrite},
		{"a read of nothing that was written", []*recordCall{get("x", 1, 1, 2)}, notLinearizable},
		{"two swaps of the same", []*recordCall{swap("", "a", true, "", 1, 5), swap("", "b", true, "", 1, 5)}, notLinearizable},
		{"a revision that goes back", []*recordCall{put("a", 5, 1, 2), put("b", 4, 3, 4)}, notLinearizable},
	} {
		got := found(&history{records: c.calls})
		if c.want == "" && len(got) != 0 || c.want != "" && got[c.want] == 0 {
			t.Errorf("%s: %v, and should be %q", c.name, got, c.want)
		}
	}
}

func TestJudgesOfLeases(t *testing.T) {
	got := func(id string, token uint64, from, to time.Duration) *leaseCall {
		return &leaseCall{resource: "r", verb: acquire, id: id, ttl: 10 * second, outcome: yes, token: token, called: from, returned: to}
	}
	session := func(id string, token uint64, from, to time.Duration) *leaseCall {
		return &leaseCall{resource: "r", verb: acquire, id: id, outcome: yes, token: token, called: from, returned: to}
	}
	other := func(v verb, id string, o outcome, from, to time.Duration) *leaseCall {
		return &leaseCall{resource: "r", verb: v, id: id, ttl: 10 * second, outcome: o, called: from, returned: to}
	}
	sees := func(id string, token uint64, from, to time.Duration) *leaseCall {
		return &leaseCall{resource: "r", verb: look, outcome: saw, seen: id, other: token, called: from, returned: to}
	}
	for _, c := range []struct {
		name  string
		calls []*leaseCall
		want  kind
	}{
		{"one after the other", []*leaseCall{got("a", 1, 1*second, 2*second), other(release, "a", yes, 3*second, 4*second), got("b", 2, 5*second, 6*second)}, ""},
		{"an end by time", []*leaseCall{got("a", 1, 1*second, 2*second), got("b", 2, 10*second, 12*second)}, ""},
		{"again with the same id", []*leaseCall{got("a", 1, 1*second, 2*second), got("a", 1, 3*second, 4*second)}, ""},
		{"a release without an answer", []*leaseCall{got("a", 1, 1*second, 2*second), other(release, "a", nothing, 3*second, never), got("b", 2, 4*second, 5*second)}, ""},
		{"an acquire without an answer", []*leaseCall{other(acquire, "a", nothing, 1*second, never), sees("a", 1, 2*second, 3*second)}, ""},
		{"an end after the last renewal", []*leaseCall{got("a", 1, 1*second, 2*second), other(renew, "a", yes, 8*second, 9*second), sees("", 0, 18*second, 19*second)}, ""},
		{"a first try that was granted without an answer", []*leaseCall{other(acquire, "a", nothing, 1*second, never), got("a", 1, 5*second, 6*second), sees("", 0, 12*second, 13*second)}, ""},
		{"a wait that was granted and lost before it was told", []*leaseCall{other(acquire, "a", lost, 1*second, 20*second), sees("a", 1, 5*second, 6*second), got("b", 2, 21*second, 22*second)}, ""},
		{"a try after what the first one got is over", []*leaseCall{other(acquire, "a", nothing, 1*second, never), sees("a", 1, 2*second, 3*second), session("b", 2, 12*second, 13*second), other(acquire, "a", lost, 14*second, 15*second), sees("b", 2, 16*second, 17*second)}, ""},
		{"the same without an answer", []*leaseCall{other(acquire, "a", nothing, 1*second, never), sees("a", 1, 2*second, 3*second), session("b", 2, 12*second, 13*second), other(acquire, "a", nothing, 14*second, never), sees("b", 2, 16*second, 17*second)}, ""},
		{"a wait that was granted while another held", []*leaseCall{got("b", 1, 1*second, 2*second), other(acquire, "a", lost, 1*second, 6*second), sees("a", 2, 3*second, 4*second)}, notLinearizable},
		{"two holders", []*leaseCall{got("a", 1, 1*second, 2*second), got("b", 2, 3*second, 4*second)}, notLinearizable},
		{"an end before its time", []*leaseCall{got("a", 1, 1*second, 2*second), other(renew, "a", yes, 8*second, 9*second), sees("", 0, 12*second, 13*second)}, notLinearizable},
		{"a lease that is lost too soon", []*leaseCall{got("a", 1, 1*second, 2*second), other(renew, "a", lost, 3*second, 4*second)}, notLinearizable},
		{"a lease that comes back", []*leaseCall{got("a", 1, 1*second, 2*second), other(release, "a", yes, 3*second, 4*second), other(renew, "a", yes, 5*second, 6*second)}, notLinearizable},
		{"a token that goes back", []*leaseCall{got("a", 2, 1*second, 2*second), other(release, "a", yes, 3*second, 4*second), got("b", 1, 5*second, 6*second)}, tokenBack},
		{"a stale look", []*leaseCall{got("a", 1, 1*second, 2*second), other(release, "a", yes, 3*second, 4*second), sees("a", 1, 5*second, 6*second)}, notLinearizable},
	} {
		found := found(&history{leases: c.calls})
		if c.want == "" && len(found) != 0 || c.want != "" && found[c.want] == 0 {
			t.Errorf("%s: %v, and should be %q", c.name, found, c.want)
		}
	}
}

func TestJudgesOfBeliefs(t *testing.T) {
	apart := &history{beliefs: []*belief{{"r", "a", 1, 1, 5}, {"r", "b", 2, 5, 9}, {"q", "c", 3, 2, 8}}}
	if got := found(apart); len(got) != 0 {
		t.Errorf("beliefs one after the other: %v", got)
	}
	together := &history{beliefs: []*belief{{"r", "a", 1, 1, 5}, {"r", "b", 2, 4, 9}}}
	if got := found(together); got[twoHolders] == 0 {
		t.Errorf("beliefs at the same time: %v", got)
	}
}

// A silence is the time in which clients wrote and none was answered. What passes while
// the judges work, between two rounds, is none.
func TestTheSilenceOfAFault(t *testing.T) {
	r := newReport(func(string, ...any) {})
	now := r.started
	r.now = func() time.Time { return now }
	after := func(d time.Duration, do func()) {
		now = now.Add(d)
		do()
	}
	r.writing()
	after(0, func() { r.begin("kill") })
	after(2*second, r.acknowledged)
	after(3*second, r.wrote) // nothing was acknowledged since: that counts
	after(44*second, r.writing)
	after(1*second, r.acknowledged)
	after(0, func() { r.begin("pause") })
	after(1*second, r.acknowledged)
	after(0, r.wrote)
	after(9*second, r.acknowledged) // of a worker that was slow to end
	if got := r.Faults["kill"].Silence; got != 3 {
		t.Errorf("the longest silence of the kill was %v s, and should be 3", got)
	}
	if got := r.Faults["pause"].Silence; got != 1 {
		t.Errorf("the longest silence of the pause was %v s, and should be 1", got)
	}
}

// echo answers whatever it is told, and returns where it is.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func TestANetworkThatFails(t *testing.T) {
	n := newNetwork()
	t.Cleanup(n.close)
	target := echo(t)
	self := map[int]string{os.Getpid(): "a"}
	address, err := n.open(gate{to: "b", who: func(c net.Conn) string { return processOf(c, self) }, target: func() string { return target }})
	if err != nil {
		t.Fatal(err)
	}
	says := func(c net.Conn) error {
		_, err := c.Write([]byte("x"))
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, 1))
		}
		return err
	}
	// A gate that refuses may reset a connection before its dialer knows that it was made.
	dial := func() (net.Conn, error) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = c.Close() })
		return c, says(c)
	}
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []pair{{"a", "b"}, {"b", "a"}} { // one way or the other, nothing comes back until it is over
		n.set(p, condition{held: true})
		arrived := make(chan error, 1)
		go func() { arrived <- says(c) }()
		select {
		case err := <-arrived:
			t.Errorf("%v is held, and something came: %v", p, err)
		case <-time.After(50 * time.Millisecond):
		}
		n.set(p, condition{})
		if err := <-arrived; err != nil {
			t.Errorf("%v is well again: %v", p, err)
		}
	}
	n.set(pair{"a", "b"}, condition{delay: 30 * time.Millisecond})
	start := time.Now()
	if err := says(c); err != nil || time.Since(start) < 30*time.Millisecond {
		t.Errorf("it took %v, %v", time.Since(start), err)
	}
	n.set(pair{"a", "b"}, condition{cut: true})
	if err := says(c); err == nil {
		t.Error("a connection lives that was cut")
	}
	if _, err := dial(); err == nil {
		t.Error("a connection is made where none can be")
	}
	n.heal()
	if _, err := dial(); err != nil {
		t.Error(err)
	}
}
