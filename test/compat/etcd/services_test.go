//go:build linux

package etcd

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// post asks the gateway, and returns what it answers without what is a server's own business.
func (w *world) post(path, body string) string {
	w.Helper()
	response, err := http.Post(w.endpoints[0]+path, "application/json", strings.NewReader(body))
	w.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	w.must(err)
	return fmt.Sprint(response.StatusCode, " ", plain(string(text)))
}

var own = regexp.MustCompile(`"(cluster_id|member_id|raft_term|revision)":"\d+",?|"(ID|lease)":"\d+"`)

// plain leaves out headers and ids, and numbers revisions.
func plain(text string) string {
	var tight bytes.Buffer
	if json.Compact(&tight, []byte(text)) == nil {
		text = tight.String() // where spaces are is left to chance
	}
	text = own.ReplaceAllString(text, "")
	text = regexp.MustCompile(`"rev":"(\d+)"`).ReplaceAllString(text, `"rev":"⟨rev $1⟩"`)
	return regexp.MustCompile(`_revision":"(\d+)"`).ReplaceAllString(text, `_revision":"⟨rev $1⟩"`)
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestGateway(t *testing.T) {
	compare(t, func(w *world) {
		a, end := encode("a"), encode("b")
		for _, call := range [][2]string{
			{"/v3/kv/put", `{"key":"` + a + `","value":"` + encode("1") + `"}`},
			{"/v3/kv/put", `{"key":"` + a + `","value":"` + encode("2") + `","prev_kv":true}`},
			{"/v3/kv/range", `{"key":"` + a + `"}`},
			{"/v3/kv/range", `{"key":"` + a + `","range_end":"` + end + `","count_only":true,"unknown":1}`},
			{"/v3/kv/txn", `{"compare":[{"key":"` + a + `","target":"VERSION","result":"EQUAL","version":"2"}],` +
				`"success":[{"request_range":{"key":"` + a + `"}},{"request_put":{"key":"` + end + `"}}]}`},
			{"/v3/kv/deleterange", `{"key":"` + a + `","range_end":"` + encode("c") + `"}`},
			{"/v3/kv/range", `{}`},
			{"/v3/kv/range", `{"key":"` + a + `","revision":"100000"}`},
			{"/v3/kv/put", `{"key":"` + a + `","lease":"5"}`},
			{"/v3/lease/grant", `{"TTL":"60","ID":"77"}`},
			{"/v3/lease/grant", `{"TTL":60,"ID":77}`},
			{"/v3/lease/timetolive", `{"ID":"78"}`},
			{"/v3/kv/lease/timetolive", `{"ID":"78"}`},
			{"/v3/lease/keepalive", `{"ID":"77"}`},
			{"/v3/lease/leases", `{}`},
			{"/v3/lock/lock", `{"name":"` + encode("lock") + `","lease":"77"}`},
			{"/v3/lock/lock", `{"name":"` + encode("lock") + `","lease":"77"}`},
			{"/v3/lock/unlock", `{"key":"` + encode("lock/4d") + `"}`},
			{"/v3/election/campaign", `{"name":"` + encode("e") + `","lease":"77","value":"` + encode("me") + `"}`},
			{"/v3/election/leader", `{"name":"` + encode("e") + `"}`},
			{"/v3/election/leader", `{"name":"` + encode("none") + `"}`},
			{"/v3/election/proclaim", `{"value":"` + a + `"}`},
			{"/v3/lease/revoke", `{"ID":"77"}`},
			{"/v3/lease/revoke", `{"ID":"77"}`},
			{"/v3/auth/status", `{}`},
		} {
			w.say("%s %s: %s", call[0], call[1], w.post(call[0], call[1]))
		}
		w.differs("code of a lock without a lease", "%s",
			w.post("/v3/lock/lock", `{"name":"`+encode("lock")+`","lease":"78"}`))
		for _, bad := range []string{`{"key":`, `[]`, `{"key":5}`, `{"key":"***"}`} {
			code, _, _ := strings.Cut(w.post("/v3/kv/range", bad), " ")
			w.say("%s: %s", bad, code)
		}
	})
}

// A watch of the gateway is a line for each answer.
func TestGatewayWatch(t *testing.T) {
	compare(t, func(w *world) {
		w.post("/v3/kv/put", `{"key":"`+encode("a")+`","value":"`+encode("1")+`"}`)
		request, err := http.NewRequestWithContext(w.ctx, "POST", w.endpoints[0]+"/v3/watch",
			bytes.NewBufferString(`{"create_request":{"key":"`+encode("a")+`","start_revision":"1"}}`))
		w.must(err)
		response, err := http.DefaultClient.Do(request)
		w.must(err)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for range 2 {
			lines.Scan()
			w.say("%s", plain(lines.Text()))
		}
	})
}

// etcdctl is run as it is.
func TestEtcdctl(t *testing.T) {
	binary := etcdctl()
	if _, err := os.Stat(binary); err != nil {
		t.Skip("left out: etcdctl is not there; make deps builds it")
	}
	compare(t, func(w *world) {
		run := func(args ...string) string {
			cmd := exec.CommandContext(w.ctx, binary, append([]string{"--endpoints", w.endpoints[0]}, args...)...)
			out, _ := cmd.Output() // what it says of errors has times and addresses in it
			return string(out)
		}
		for _, line := range []string{
			"put a 1", "put a 2 --prev-kv", "get a", "get a --print-value-only", "get a --prefix --keys-only", "get b",
			"del a --prev-kv", "del a", "lock m echo locked", "lease timetolive 1234abcd", "compaction 1", "alarm list",
			"get x --from-key --limit 2", "put k v", "get k --count-only --write-out fields",
		} {
			out := regexp.MustCompile(`"(ClusterID|MemberID|Revision|RaftTerm)" : \d+`).ReplaceAllString(run(strings.Fields(line)...), "$1")
			w.say("%s: %s", line, strings.ReplaceAll(out, "\n", "/"))
		}
		if out := run("endpoint", "status"); !strings.Contains(out, "3.7.3") {
			w.Errorf("%s: endpoint status says %q", w.name, out)
		}
		granted := strings.Fields(run("lease", "grant", "60"))
		w.say("lease %s", strings.Join(append(granted[:1:1], granted[2:]...), " "))
	})
}

// etcdctl returns where the program is that make deps builds.
func etcdctl() string {
	if folder := os.Getenv("LEASEHOLD_PEERS"); folder != "" {
		return filepath.Join(folder, "etcdctl")
	}
	return filepath.Join("..", "..", "..", "bin", "peers", "etcdctl")
}
