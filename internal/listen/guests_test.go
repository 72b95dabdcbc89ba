package listen

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The list of who is connected names clients as they name themselves, in text that can be shown, and forgets those
// who have gone.
func TestGuests(t *testing.T) {
	gates := &Gates{}
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") })
	h := NewHost(Config{Name: "port", Gates: gates, HTTP: []HTTP{
		{Name: "a", Routes: []Route{{Pattern: "/a", Handler: answer}}},
		{Name: "b", Routes: []Route{{Pattern: "/b", Handler: answer}}},
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ctx, l) }()
	defer func() {
		stop()
		<-ended
	}()

	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	get := func(c net.Conn, path, client string) {
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: %s\r\n\r\n", path, client)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != 200 {
			t.Fatal(r, err)
		}
	}
	check := func(want ...Guest) {
		t.Helper()
		if got := gates.Guests(); !slices.Equal(got, want) {
			t.Errorf("there are %+v, and should be %+v", got, want)
		}
	}
	check()
	first, second, third := dial(), dial(), dial()
	get(first, "/a", "tool/1")
	get(second, "/a", "tool/1")
	get(third, "/a", "tool/1")
	check(Guest{"port", "a", "tool/1", 3})
	get(third, "/b", "red\xff"+strings.Repeat("x", 200))
	check(Guest{"port", "a", "tool/1", 2}, Guest{"port", "b", "red" + strings.Repeat("x", 124), 1})
}
