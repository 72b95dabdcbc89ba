package etcd

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// page returns a page of the door's own port.
func (w *world) page(path string) (int, string) {
	w.Helper()
	client := w.client()
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://server" + path)
	w.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	w.must(err)
	return answer.StatusCode, string(text)
}

// The pages at which probes look say what those of etcd do: a server without a leader is alive, and not ready.
func TestProbes(t *testing.T) {
	inWorld(t, func(w *world) {
		for path, want := range map[string]string{
			"/livez": "ok\n", "/readyz": "ok\n", "/readyz/linearizable_read": "ok\n",
			"/livez?verbose":  "[+]serializable_read ok\nok\n",
			"/readyz?verbose": "[+]serializable_read ok\n[+]linearizable_read ok\nok\n",
		} {
			if code, text := w.page(path); code != http.StatusOK || text != want {
				t.Errorf("%s is %d %q, want %q", path, code, text, want)
			}
		}
		if code, text := w.page("/livez/nothing"); code != http.StatusNotFound {
			t.Errorf("an unknown probe is %d %q", code, text)
		}
		w.leaderless.Store(true)
		for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/readyz?exclude=linearizable_read": 200,
			"/readyz/linearizable_read": 503} {
			if code, text := w.page(path); code != want {
				t.Errorf("without a leader %s is %d %q, want %d", path, code, text, want)
			}
		}
	})
}

// What a server says of its versions, clients compare as etcd's.
func TestVersions(t *testing.T) {
	inWorld(t, func(w *world) {
		status, err := w.maintenance.Status(w.ctx, &pb.StatusRequest{})
		w.must(err)
		_, text := w.page("/version")
		var page struct{ Etcdserver, Etcdcluster, Storage string }
		w.must(json.Unmarshal([]byte(text), &page))
		if status.Version != "3.7.3" || page.Etcdserver != status.Version || page.Etcdcluster != "3.7.0" ||
			page.Storage != "3.7.0" || status.StorageVersion != page.Storage {
			t.Errorf("the status is %v, the page %s", status, text)
		}
	})
}

// A server is listed with the address of its own port for etcd, as far as it is known, since only there all of etcd's
// pages and the faster transport are.
func TestMembersHaveTheirOwnPort(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	for _, c := range []struct{ client, own, want string }{
		{"https://leases.example:4653", "0.0.0.0:2379", "https://leases.example:2379"},
		{"http://127.0.0.1:4653", "127.0.0.1:2379", "http://127.0.0.1:2379"},
		{"https://leases.example:4653", "127.0.0.1:2379", "https://leases.example:4653"},
		{"http://[::1]:4653", "[::1]:2379", "http://[::1]:2379"},
		{"http://127.0.0.1:4653", "", "http://127.0.0.1:4653"},
		{"", "127.0.0.1:2379", ""},
	} {
		b := door.NewBackend(e, door.Options{})
		b.SetEntrances([]door.Entrance{{Kind: Kind, Own: c.own}})
		server := engine.Server{ID: 1, Client: c.client}
		got := New(b, Config{}).clientURLs(server, 1)
		if want := slices.DeleteFunc([]string{c.want}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("a server at %q with the port %q is listed at %q, want %q", c.client, c.own, got, want)
		}
		if other := New(b, Config{}).clientURLs(server, 2); c.client != "" && !slices.Equal(other, []string{c.client}) {
			t.Errorf("another server is listed at %q", other)
		}
	}
}
