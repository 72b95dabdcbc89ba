//go:build linux

package consul

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// consulProgram is Consul's own command line, with the address of a server.
func (w *world) consulProgram(args ...string) *exec.Cmd {
	w.Helper()
	cmd := exec.CommandContext(w.ctx, peersDir()+"/consul", args...)
	cmd.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+w.url)
	return cmd
}

func (w *world) runs(args ...string) string {
	w.Helper()
	out, err := w.consulProgram(args...).CombinedOutput()
	return fmt.Sprintf("%s (%v)", strings.TrimSpace(string(out)), err)
}

// TestConsulProgram runs Consul's own command line: its locks, of one and of several, and its keys.
func TestConsulProgram(t *testing.T) {
	if !there() {
		t.Skip("left out: there is no Consul: make peers")
	}
	compare(t, func(w *world) {
		w.say("%s", w.runs("lock", "jobs/one", "printenv CONSUL_LOCK_HELD"))
		w.say("%s", w.runs("lock", "-child-exit-code", "jobs/one", "exit 3"))
		w.say("%s", w.runs("lock", "-n", "2", "jobs/two", "printenv CONSUL_LOCK_HELD"))
		dir := t.TempDir()
		began, end := filepath.Join(dir, w.name), filepath.Join(dir, w.name+"-end")
		script := fmt.Sprintf("touch %s; while [ ! -e %s ]; do sleep 0.05; done", began, end)
		first := w.consulProgram("lock", "jobs/one", script)
		w.must(first.Start())
		for ; ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(began); err == nil {
				break
			}
			if w.ctx.Err() != nil {
				t.Fatal("the command does not begin")
			}
		}
		w.say("%s", w.runs("lock", "-timeout", "300ms", "jobs/one", "echo two hold it"))
		w.must(os.WriteFile(end, nil, 0o600))
		w.must(first.Wait())
		w.say("%s", w.runs("lock", "jobs/one", "echo it is free"))
		w.say("%s", w.runs("kv", "put", "-flags", "7", "kv/a", "hello"))
		w.say("%s", w.runs("kv", "get", "kv/a"))
		w.say("%s", w.runs("kv", "put", "-cas", "-modify-index", "1", "kv/a", "no"))
		exported := w.runs("kv", "export", "kv/")
		w.say("%s", exported)
		w.say("%s", w.runs("kv", "delete", "-recurse", "kv/"))
		w.say("%s", w.runs("kv", "import", "-prefix", "in/", strings.TrimSuffix(exported, " (<nil>)")))
		w.say("%s", w.runs("kv", "get", "-recurse"))
		w.say("%s", w.runs("kv", "get", "none"))
	})
}

// What the calls of Patroni are answered: it has TTLs halved, hardly a lock-delay, and keys that go with their session.
func TestPatroni(t *testing.T) {
	compare(t, func(w *world) {
		w.say("agent %d", w.send("GET /v1/agent/self", "").status)
		short := w.send("PUT /v1/session/create", `{"name":"db-node1","lockdelay":0.001,"behavior":"delete","ttl":"5s"}`)
		w.say("too short: %d %v", short.status, strings.HasPrefix(short.body, "Invalid Session TTL"))
		create := `{"name": "db-%s", "node": "NODE", "checks": [], "lockdelay": "0.001s", "behavior": "delete", "ttl": "15s"}`
		one := w.open(strings.ReplaceAll(fmt.Sprintf(create, "node1"), "NODE", w.node))
		two := w.open(strings.ReplaceAll(fmt.Sprintf(create, "node2"), "NODE", w.node))
		w.ask("PUT /v1/kv/service/db/initialize?acquire="+one, "7035")
		w.ask("PUT /v1/kv/service/db/members/node1?acquire="+one, `{"role":"master"}`)
		w.ask("PUT /v1/kv/service/db/members/node2?acquire="+two, `{"role":"replica"}`)
		w.ask("PUT /v1/kv/service/db/leader?acquire="+one, "node1")
		w.ask("PUT /v1/kv/service/db/leader?acquire="+two, "node2")
		w.ask("GET /v1/kv/service/db/?recurse=1", "")
		w.ask("GET /v1/kv/service/db/leader", "")
		w.ask("PUT /v1/session/renew/"+one, "")
		w.ask("PUT /v1/kv/service/db/optime/leader", "12345")
		leader := w.send("GET /v1/kv/service/db/leader", "").index()
		quiet := w.send("GET /v1/kv/service/db/leader?index="+leader+"&wait=1s", "")
		w.say("nothing new: %v", quiet.index() == leader)
		woken := make(chan reply, 1)
		go func() { woken <- w.send("GET /v1/kv/service/db/leader?index="+leader+"&wait=10s", "") }()
		w.say("given up: %s", w.send("DELETE /v1/kv/service/db/leader?cas="+leader, "").body)
		news := soon(w, "the news that the leader is gone", woken)
		w.say("the leader is gone: %d %v", news.status, news.index() != leader)
		w.ask("PUT /v1/kv/service/db/leader?acquire="+two, "node2")
		w.ask("PUT /v1/session/destroy/"+one, "")
		w.ask("GET /v1/kv/service/db/?keys=1", "")
		gone := w.send("PUT /v1/kv/service/db/leader?acquire="+one, "node1")
		w.say("of a session that has ended: %d", gone.status)
		if w.name == "leasehold" && !strings.HasPrefix(gone.body, "invalid session") {
			t.Errorf("Patroni would not know %q", gone.body)
		}
		w.ask("DELETE /v1/kv/service/db/?recurse=1", "")
	})
}

func peersDir() string {
	if dir := os.Getenv("LEASEHOLD_PEERS"); dir != "" {
		return dir
	}
	return "../../../bin/peers"
}
