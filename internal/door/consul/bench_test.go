package consul

import (
	"strings"
	"testing"
)

// BenchmarkLock takes a lock and gives it back with the requests of Consul's own library: a session for it, a look at
// the key before and after it is taken, and the end of the session.
func BenchmarkLock(b *testing.B) {
	w := newBench(b, Config{})
	w.ask("PUT /v1/kv/lock", "").is("true")
	b.ReportAllocs()
	for b.Loop() {
		created := w.ask("PUT /v1/session/create", `{"Name":"Consul API Lock","TTL":"15s","LockDelay":1000000}`).body
		id := strings.TrimSuffix(strings.TrimPrefix(created, `{"ID":"`), `"}`)
		w.ask("GET /v1/kv/lock?wait=15000ms", "").expect(200)
		w.ask("PUT /v1/kv/lock?acquire="+id+"&flags=3304740253564472344", "").is("true")
		w.ask("GET /v1/kv/lock?consistent=", "").expect(200, id)
		w.ask("PUT /v1/kv/lock?flags=3304740253564472344&release="+id, "").is("true")
		w.ask("PUT /v1/session/destroy/"+id, "").is("true")
	}
}
