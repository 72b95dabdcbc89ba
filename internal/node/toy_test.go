package node

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/door/doortest/toy"
)

// A new door is one folder, and this one line in the table.
func withToy(t *testing.T) {
	before := doors
	t.Cleanup(func() { doors = before })
	doors = append(doors[:len(doors):len(doors)], toy.Kind)
}

// say sends a line and returns the next one.
func say(t *testing.T, address, line string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, line)
	said, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// It speaks its protocol on the port that all doors share, beside HTTP, and what it grants is
// seen by the others; its requests are counted like theirs.
func TestToyDoorOnTheSharedPort(t *testing.T) {
	withToy(t)
	address := strings.TrimPrefix(startServer(t, settings(t, nil).Server), "http://")
	if got := say(t, address, "LEASE reports/nightly worker-7 30s"); got != "granted reports/nightly worker-7 1\n" {
		t.Errorf("the toy says %q", got)
	}
	if got := say(t, address, "LEASE reports/nightly worker-8 30s"); got != "held reports/nightly\n" {
		t.Errorf("the toy says to another %q", got)
	}
	for path, want := range map[string]string{
		"/v1/resources/reports/nightly": `"worker-7"`,
		"/v1/audit":                     `"toy"`,
		"/metrics":                      `leasehold_requests_total{code="ok",door="toy",verb="lease"} 2`,
	} {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s has no %s:\n%s", path, want, body)
		}
	}
}

// Its setting, which gives it a port of its own, is one of the server.
func TestToyDoorOnItsOwnPort(t *testing.T) {
	withToy(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	startServer(t, settings(t, map[string]string{"toy-listen": address}).Server)
	if got := say(t, address, "LEASE r h 30s"); got != "granted r h 1\n" {
		t.Errorf("the toy says %q", got)
	}
	if got := say(t, address, "GET / HTTP/1.1"); !strings.HasPrefix(got, "refused write LEASE") {
		t.Errorf("the toy says to a browser %q", got)
	}
}
