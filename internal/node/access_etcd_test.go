package node

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold/internal/core"
)

// Clients of etcd are asked for here through the gateway: the calls are the same, and so is what decides about them.

// etcdLease is the lease of a place, as clients of etcd number it.
func etcdLease(p place) int64 {
	n, _ := strconv.Atoi(p.x[1:])
	return 0x70000000 + int64(n)
}

// etcdLocked is the key of whoever has the lock of a place.
func etcdLocked(p place) string { return fmt.Sprintf("%s/%x", p.path(), etcdLease(p)) }

func grantEtcd(w *world, p place) {
	w.do(p.owner, &core.OpenSession{Namespace: p.space, ID: fmt.Sprintf("%016x", etcdLease(p)), TTL: time.Hour})
}

// lockEtcd is a lock that its owner has taken.
func lockEtcd(w *world, p place) {
	grantEtcd(w, p)
	sent(gateway("/v3/lock/lock", `{"name":"PATH64","lease":"LEASE"}`)(p))(w, p)
}

// gateway is a call. PATH64, LOCKED64 and VALUE64 are in base64, as bytes are; END64 is the end of all that begins with PATH.
func gateway(path, body string) func(place) request {
	return func(p place) request {
		encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		body := strings.NewReplacer("PATH64", encode(p.path()), "LOCKED64", encode(etcdLocked(p)), "VALUE64", encode("v-"+p.x),
			"END64", encode(core.PrefixEnd(p.path())), "LEASE", fmt.Sprint(etcdLease(p))).Replace(body)
		return request{method: "POST", path: path, body: body}
	}
}

// etcdStream is a call that does not end: it is read up to some text, or for a moment.
func etcdStream(path, body, until string) func(place) request {
	return func(p place) request {
		r := gateway(path, body)(p)
		r.within, r.until = time.Second, until
		return r
	}
}

var (
	granted = befores{grantEtcd}
	taken   = befores{lockEtcd}
	kept    = befores{record}
)

// etcdRows are those of etcd.
var etcdRows = []row{
	{"range", "", kept, gateway("/v3/kv/range", `{"key":"PATH64"}`), "v"},
	{"range", "all below", kept, gateway("/v3/kv/range", `{"key":"PATH64","range_end":"END64"}`), "v"},
	{"put", "", nil, gateway("/v3/kv/put", `{"key":"PATH64","value":"VALUE64"}`), ""},
	{"put", "over", kept, gateway("/v3/kv/put", `{"key":"PATH64","value":"VALUE64"}`), ""},
	{"put", "with its lease", granted, gateway("/v3/kv/put", `{"key":"PATH64","value":"VALUE64","lease":"LEASE"}`), ""},
	{"delete-range", "", kept, gateway("/v3/kv/deleterange", `{"key":"PATH64"}`), ""},
	{"delete-range", "all below", kept, gateway("/v3/kv/deleterange", `{"key":"PATH64","range_end":"END64"}`), ""},
	{"txn", "that reads", kept, gateway("/v3/kv/txn", `{"success":[{"request_range":{"key":"PATH64"}}]}`), "v"},
	{"txn", "that compares", kept,
		gateway("/v3/kv/txn", `{"compare":[{"key":"PATH64","target":"VERSION","result":"EQUAL","version":"1"}]}`), ""},
	{"txn", "that writes", kept,
		gateway("/v3/kv/txn", `{"success":[{"request_put":{"key":"PATH64","value":"VALUE64"}}]}`), ""},
	{"compact", "", nil, gateway("/v3/kv/compaction", `{"revision":"9000000000000000000"}`), ""},
	{"watch", "", kept, etcdStream("/v3/watch", `{"create_request":{"key":"PATH64","start_revision":"1"}}`, "value"), "v"},
	{"grant", "", nil, gateway("/v3/lease/grant", `{"TTL":"60","ID":"LEASE"}`), ""},
	{"grant", "there already", granted, gateway("/v3/lease/grant", `{"TTL":"60","ID":"LEASE"}`), ""},
	{"revoke", "", granted, gateway("/v3/lease/revoke", `{"ID":"LEASE"}`), ""},
	{"keep-alive", "", granted, gateway("/v3/lease/keepalive", `{"ID":"LEASE"}`), ""},
	{"time-to-live", "", granted, gateway("/v3/lease/timetolive", `{"ID":"LEASE","keys":true}`), ""},
	{"leases", "", granted, gateway("/v3/lease/leases", `{}`), "l"},
	{"lock", "", granted, gateway("/v3/lock/lock", `{"name":"PATH64","lease":"LEASE"}`), ""},
	{"unlock", "", taken, gateway("/v3/lock/unlock", `{"key":"LOCKED64"}`), ""},
	{"campaign", "", granted, gateway("/v3/election/campaign", `{"name":"PATH64","lease":"LEASE","value":"VALUE64"}`), ""},
	{"proclaim", "", taken,
		gateway("/v3/election/proclaim", `{"leader":{"name":"PATH64","key":"LOCKED64","rev":"1","lease":"LEASE"},"value":"VALUE64"}`), ""},
	{"leader", "", taken, gateway("/v3/election/leader", `{"name":"PATH64"}`), ""},
	{"observe", "", taken, etcdStream("/v3/election/observe", `{"name":"PATH64"}`, "\n"), ""},
	{"resign", "", taken, gateway("/v3/election/resign", `{"leader":{"name":"PATH64","key":"LOCKED64","rev":"1","lease":"LEASE"}}`), ""},
	{"member-list", "", nil, gateway("/v3/cluster/member/list", `{}`), ""},
	{"alarm", "", nil, gateway("/v3/maintenance/alarm", `{}`), ""},
	{"status", "", nil, gateway("/v3/maintenance/status", `{}`), ""},
	{"auth-status", "", nil, gateway("/v3/auth/status", `{}`), ""},
}

// etcdOpen are the calls that anybody may make: to see whether a server is up, which the gateway does not have, and to
// log in, which is slowed down after some failures.
var etcdOpen = []string{"health-check", "health-watch", "authenticate"}

var inBase64 = regexp.MustCompile(`"[A-Za-z0-9+/]{4,}={0,2}"`)

// plainEtcd returns the answer of the gateway with texts instead of bytes.
func plainEtcd(body string) string {
	return inBase64.ReplaceAllStringFunc(body, func(quoted string) string {
		text, err := base64.StdEncoding.DecodeString(quoted[1 : len(quoted)-1])
		printable := utf8.Valid(text) && strings.IndexFunc(string(text), func(r rune) bool { return !unicode.IsPrint(r) }) < 0
		if err != nil || !printable {
			return quoted
		}
		return `"` + string(text) + `"`
	})
}
