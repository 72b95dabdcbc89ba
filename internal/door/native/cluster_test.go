package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A village is a cluster of which nothing but its answers exists.
type village struct {
	*memory.Engine
	outlook engine.Outlook
	sums    engine.Sums
	err     error
	backup  func(io.Writer) error
	asked   []string
	warns   []string
}

func (v *village) Warnings() []string { return v.warns }

func newVillage(t *testing.T) *village {
	v := &village{Engine: memory.Start(engine.NewGoClock()), outlook: engine.Outlook{
		Cluster: "c", Self: 2, Leader: 1, Term: 4, Level: 1,
		Servers: []engine.Server{
			{ID: 1, Name: "n1", Peer: "10.0.0.1:1", Client: "https://n1", Voter: true, Version: "v", Reachable: true, Applied: 90},
			{ID: 2, Name: "n2", Peer: "10.0.0.2:1", Voter: true, Reachable: true, Applied: 80, Silent: 60 * time.Millisecond, LowRoom: true},
			{ID: 4, Name: "n4", Peer: "10.0.0.4:1", Silent: -1, Applied: 7, LowRoom: true},
		},
	}}
	t.Cleanup(func() { v.Close() })
	return v
}

func (v *village) note(format string, args ...any) error {
	v.asked = append(v.asked, fmt.Sprintf(format, args...))
	return v.err
}

func (v *village) Outlook(context.Context) (engine.Outlook, error) {
	return v.outlook, v.note("outlook")
}

func (v *village) Add(_ context.Context, name, address string) (engine.Server, error) {
	return engine.Server{ID: 9, Name: name, Peer: address, Silent: -1}, v.note("add %s %s", name, address)
}
func (v *village) Promote(_ context.Context, name string) error { return v.note("promote %s", name) }
func (v *village) Remove(_ context.Context, name string) error  { return v.note("remove %s", name) }
func (v *village) Upgrade(context.Context) (core.Level, error)  { return 5, v.note("upgrade") }
func (v *village) Transfer(_ context.Context, name string) (string, error) {
	return "n2", v.note("transfer %q", name)
}
func (v *village) Sums(context.Context) (engine.Sums, error) { return v.sums, v.note("sums") }
func (v *village) Backup(_ context.Context, w io.Writer) error {
	if err := v.note("backup"); err != nil || v.backup == nil {
		return err
	}
	return v.backup(w)
}

// A server that works and is low on room is ready, and says so.
func TestReadyWithAWarning(t *testing.T) {
	v := newVillage(t)
	door := open(v, Config{})
	v.warns = []string{"the data disk is low on room"}
	if got := ask(t, door, "GET", "/readyz", "").expect(200).body; got != "ok\n[!]the data disk is low on room\n" {
		t.Errorf("readyz says %q", got)
	}
	ask(t, door, "GET", "/readyz?verbose", "").expect(200, "[+]engine ok\n[!]the data disk is low on room\nreadyz check passed\n")
	if got := ask(t, door, "GET", "/livez", "").expect(200).body; got != "ok" {
		t.Errorf("livez says %q", got)
	}
}

func TestClusterOutlook(t *testing.T) {
	v := newVillage(t)
	door := open(v, Config{})
	a := ask(t, door, "GET", "/v1/cluster", "").expect(200, `"leader":"n1"`, `"self":"n2"`, `"silent_ms":60`, `"silent_ms":0`, `"low_room":true`)
	got := read[v1.Cluster](a)
	if len(got.Servers) != 3 || got.Servers[2].SilentMS != nil || got.Servers[2].Applied != 0 || got.Servers[2].Voter || got.Term != 4 {
		t.Errorf("the cluster is %+v", got)
	}
	v.outlook.Leader = 0
	ask(t, door, "GET", "/v1/cluster", "").expect(200).without("leader")
	v.err = engine.Unavailable("nobody leads")
	ask(t, door, "GET", "/v1/cluster", "").expect(503, "nobody leads")
	ask(t, door, "GET", "/v1/cluster?namespace=x", "").expect(400, `the query has \"namespace\", which is unknown here`)
	ask(t, door, "POST", "/v1/cluster", "").expect(405)
}

func TestClusterChanges(t *testing.T) {
	v := newVillage(t)
	door := open(v, Config{})
	ask(t, door, "POST", "/v1/cluster/members", `{"name":"n5","peer":"10.0.0.5:4654"}`).expect(200, `"id":9`, `"voter":false`)
	ask(t, door, "POST", "/v1/cluster/members/n5/promote", "").expect(200, "{}")
	ask(t, door, "DELETE", "/v1/cluster/members/n5", "").expect(200, "{}")
	ask(t, door, "POST", "/v1/cluster/transfer", `{"to":"n2"}`).expect(200, `{"leader":"n2"}`)
	ask(t, door, "POST", "/v1/cluster/transfer", "").expect(200, `{"leader":"n2"}`)
	ask(t, door, "POST", "/v1/cluster/upgrade", "").expect(200, `{"level":5}`)
	want := []string{"add n5 10.0.0.5:4654", "promote n5", "remove n5", `transfer "n2"`, `transfer ""`, "upgrade"}
	if !slices.Equal(v.asked, want) {
		t.Errorf("asked %q, want %q", v.asked, want)
	}

	v.asked = nil
	long := strings.Repeat("n", 64)
	for body, want := range map[string]string{
		`{"peer":"10.0.0.5:1"}`:                       "name is missing",
		`{"name":"` + long + `","peer":"10.0.0.5:1"}`: "at most 63",
		`{"name":"n"}`:                                "peer is missing",
		`{"name":"n","peer":"10.0.0.5"}`:              "write it as host:port",
		`{"name":"n","peer":":1"}`:                    "write it as host:port",
		`{"name":"n 5","peer":"10.0.0.5:1"}`:          "cannot be a name: use 1 to 63 letters",
		`{"name":"n","peer":"x:0"}`:                   "write it as host:port",
		`{"name":"n","peer":"x:70000"}`:               "write it as host:port",
		`{"name":"n","peer":"x:1","voter":true}`:      "unknown",
		`{"name":"n\u0000","peer":"x:1"}`:             "control character",
		``:                                            "the body is empty",
	} {
		ask(t, door, "POST", "/v1/cluster/members", body).expect(400, want)
	}
	ask(t, door, "DELETE", "/v1/cluster/members/"+long, "").expect(400, "at most 63")
	ask(t, door, "POST", "/v1/cluster/transfer", `{"to":"`+long+`"}`).expect(400, "at most 63")
	if len(v.asked) != 0 {
		t.Errorf("what is wrong was asked for: %q", v.asked)
	}
	for code, status := range map[leasehold.Code]int{leasehold.NotFound: 404, leasehold.Refused: 422, leasehold.Unavailable: 503, leasehold.Undecided: 504} {
		v.err = &leasehold.Error{Code: code, Message: "because"}
		ask(t, door, "DELETE", "/v1/cluster/members/n5", "").expect(status, "because")
		ask(t, door, "POST", "/v1/cluster/members/n5/promote", "").expect(status, "because")
		ask(t, door, "POST", "/v1/cluster/members", `{"name":"n5","peer":"x:1"}`).expect(status, "because")
		ask(t, door, "POST", "/v1/cluster/transfer", `{"to":"n9"}`).expect(status, "because")
	}
}

func TestClusterSums(t *testing.T) {
	v := newVillage(t)
	door := open(v, Config{})
	v.sums = engine.Sums{Index: 7, Of: []engine.Sum{{Server: 1, Name: "n1", Err: "away"}, {Server: 2, Name: "n2", Hash: "a"}, {Server: 3, Name: "n3", Hash: "a"}}}
	ask(t, door, "GET", "/v1/cluster/check", "").expect(200, `"index":7,"same":true`, `{"id":1,"name":"n1","error":"away"}`)
	v.sums.Of[2].Hash = "b"
	ask(t, door, "GET", "/v1/cluster/check", "").expect(200, `"same":false`)
}

// A backup arrives whole, or is seen not to.
func TestBackupOverHTTP(t *testing.T) {
	v := newVillage(t)
	door := open(v, Config{})
	ask(t, door, "GET", "/v1/cluster/backup", "").expect(200)
	base, stop := openLoopback(t, door)
	defer stop()
	caller, err := v1.NewCaller(v1.CallerConfig{Server: base, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Repeat("state", 100000)
	v.backup = func(w io.Writer) error {
		_, err := io.WriteString(w, whole)
		return err
	}
	take := func() (string, error) {
		r, err := caller.Backup(t.Context())
		if err != nil {
			return "", err
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		return string(b), err
	}
	if got, err := take(); err != nil || got != whole {
		t.Errorf("got %d bytes of %d: %v", len(got), len(whole), err)
	}
	v.backup = func(w io.Writer) error {
		_, _ = io.WriteString(w, whole)
		return errors.New("the disk is gone")
	}
	if got, err := take(); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("got %d bytes of a backup that failed, and %v", len(got), err)
	}
	v.err = engine.Unavailable("nobody leads")
	if _, err := take(); !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "nobody leads") {
		t.Errorf("got %v", err)
	}
}

// An engine that is no cluster says so.
func TestNoCluster(t *testing.T) {
	door := newDoor(t, Config{})
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/cluster", ""}, {"POST", "/v1/cluster/members", `{"name":"n","peer":"x:1"}`}, {"POST", "/v1/cluster/members/n/promote", ""},
		{"DELETE", "/v1/cluster/members/n", ""}, {"POST", "/v1/cluster/transfer", ""}, {"GET", "/v1/cluster/check", ""}, {"GET", "/v1/cluster/backup", ""},
	} {
		ask(t, door, c.method, c.path, c.body).expect(422, "this server is not part of a cluster")
	}
}
