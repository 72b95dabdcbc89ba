package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// A row is one thing that can be asked, by somebody, of something that is its own or another's.
type row struct {
	op     string // as openapi.yaml or a door calls it
	how    string // which way of asking, if there are several
	before []func(*world, place)
	ask    func(place) request
	shows  string // what is in an answer that shows something: h, v or x, see place; empty: it shows nothing
}

// A place is what one cell of the table is about.
type place struct {
	space, prefix string
	x             string // names it, and nothing else
	owner         string
	token         *leasehold.Token // of the lease that was prepared
	order         *uint64          // of its alarm
}

func (p place) path() string { return p.prefix + p.x }

// container is one of Azure's clients, and blob one in it.
func (p place) container() string { return "/box" + p.x }
func (p place) blob() string      { return p.container() + "/" + p.x }

// fill puts the names of a place into a text.
func (p place) fill(text string) string {
	return strings.NewReplacer("PATH", p.path(), "BOX", p.container(), "BLOB", p.blob(), "XX", p.x, "TOKEN", fmt.Sprint(*p.token),
		"ORDER", fmt.Sprint(*p.order), "SPACE", p.space).Replace(text)
}

func lease(w *world, p place) {
	*p.token = w.do(p.owner, &core.Acquire{Namespace: p.space, Resource: p.path(), ID: "id-" + p.x, Holder: "h-" + p.x,
		TTL: time.Hour}).Lease.Token
}

func waiter(w *world, p place) {
	w.do("vic", &core.Acquire{Namespace: p.space, Resource: p.path(), ID: "first-" + p.x, Holder: "first-" + p.x,
		TTL: time.Hour})
	// With a session: a waiter without one is gone after 15 s without a sign of life, and there is more to prepare.
	w.do(p.owner, &core.OpenSession{Namespace: p.space, ID: "w-" + p.x, TTL: time.Hour})
	w.do(p.owner, &core.Acquire{Namespace: p.space, Resource: p.path(), ID: "id-" + p.x, Holder: "h-" + p.x,
		Session: "w-" + p.x, Wait: time.Hour})
}

func session(w *world, p place) {
	w.do(p.owner, &core.OpenSession{Namespace: p.space, ID: "s-" + p.x, TTL: time.Hour,
		Labels: leasehold.Labels{{Key: "k", Value: "h-" + p.x}}})
}

func record(w *world, p place) {
	w.do(p.owner, &core.PutRecord{Namespace: p.space, Path: p.path(), Value: "v-" + p.x, Keep: 5})
}

func definition(w *world, p place) {
	w.do(p.owner, &core.Define{Namespace: p.space, Definition: leasehold.Definition{Path: p.path(), Expected: time.Minute}})
}

// pool is one with a unit on a host.
func pool(w *world, p place) {
	w.do(p.owner, &core.SetUnits{Namespace: p.space, Resource: p.path(), Host: "n1", Units: []core.HostUnit{{Name: "u-" + p.x}}})
}

// task is one in a folder of its own.
func task(w *world, p place) {
	w.do(p.owner, &core.PutTask{Namespace: p.space, Path: p.path() + "/t", Value: "v-" + p.x})
}

// claimed is a task that its owner does.
func claimed(w *world, p place) {
	task(w, p)
	*p.token = w.do(p.owner, &core.Acquire{Namespace: p.space, Resource: p.path() + "/", ID: "id-" + p.x, Holder: "h-" + p.x,
		TTL: time.Hour, Task: true}).Lease.Token
}

// reserved is a reservation for tomorrow.
func reserved(w *world, p place) { reserveFrom(w, p, time.Now().Add(24*time.Hour)) }

// begun is one that has begun.
func begun(w *world, p place) { reserveFrom(w, p, time.Now()) }

func reserveFrom(w *world, p place, at time.Time) {
	w.do(p.owner, &core.Reserve{Namespace: p.space, Resource: p.path(), ID: "r-" + p.x, Holder: "h-" + p.x, Length: time.Hour,
		From: reservation.Moment(at.UnixNano())})
}

// recurring is a reservation for every day.
func recurring(w *world, p place) {
	at := reservation.Moment(time.Now().Add(24 * time.Hour).UnixNano())
	w.do(p.owner, &core.Reserve{Namespace: p.space, Resource: p.path(), ID: "r-" + p.x, Holder: "h-" + p.x, Length: time.Hour,
		Rule: &leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays, Length: time.Hour}, Starts: []reservation.Moment{at}, To: at.Add(time.Hour)})
}

// alarm is that of a lease which is held for longer than was expected.
func alarm(w *world, p place) {
	w.do(p.owner, &core.Define{Namespace: p.space, Definition: leasehold.Definition{Path: p.path(), Expected: time.Second}})
	lease(w, p)
}

// sent is something that the owner sends.
func sent(r request) func(*world, place) {
	return func(w *world, p place) {
		w.Helper()
		r := p.filled(r)
		if got := w.ask(p.owner, r); got.status/100 != 2 && got.status != 409 {
			w.Fatalf("%s: %+v: %s", p.owner, r, got.all())
		}
	}
}

func (p place) filled(r request) request {
	r.path, r.body = p.fill(r.path), p.fill(r.body)
	for i := range r.headers {
		r.headers[i] = p.fill(r.headers[i])
	}
	return r
}

// of, posted and get are requests to the native door.
func of(method, path, body string, headers ...string) func(place) request {
	return func(p place) request {
		mark := "?"
		if strings.Contains(path, "?") {
			mark = "&"
		}
		r := request{method: method, path: path, body: body, headers: append([]string(nil), headers...)}
		if strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/v1/cluster") &&
			!strings.HasPrefix(path, "/v1/access") && path != "/v1/namespaces" || strings.HasPrefix(path, "/terraform") {
			r.path += mark + "namespace=SPACE"
		}
		return p.filled(r)
	}
}

func posted(path, body string, headers ...string) func(place) request {
	return of("POST", path, body, headers...)
}
func get(path string) func(place) request { return of("GET", path, "") }

func txn(body string) func(place) request { return posted("/v1/txn", body) }

type befores = []func(*world, place)

var (
	leased   = befores{lease}
	waiting  = befores{waiter}
	inherent = befores(nil)
)

// leaseRows are those of leases and their queues.
var leaseRows = []row{
	{"acquire", "", inherent, posted("/v1/acquire", `{"resource":"PATH","holder":"me","id":"new-XX"}`), ""},
	{"acquire", "shared", inherent,
		posted("/v1/acquire", `{"resource":"PATH","holder":"me","id":"new-XX","slots":1,"capacity":2}`), ""},
	{"acquire", "also", inherent,
		posted("/v1/acquire", `{"resource":"a/also-XX","holder":"me","id":"new-XX","also":[{"resource":"PATH","id":"more-XX"}]}`), ""},
	{"acquire", "held", leased, posted("/v1/acquire", `{"resource":"PATH","holder":"me","id":"new-XX"}`), ""},
	{"acquire", "same id", leased, posted("/v1/acquire", `{"resource":"PATH","holder":"h-XX","id":"id-XX","ttl":"1h"}`), "h"},
	{"renew", "", leased, posted("/v1/renew", `{"id":"id-XX"}`), "h"},
	{"release", "", leased, posted("/v1/release", `{"id":"id-XX"}`), ""},
	{"release", "withdraw", leased, posted("/v1/release", `{"id":"id-XX","withdraw":true}`), ""},
	{"release", "several", leased, posted("/v1/release", `{"ids":["id-XX"]}`), ""},
	{"change", "", leased, posted("/v1/change", `{"id":"id-XX","holder":"another"}`), ""},
	{"change", "new id", leased, posted("/v1/change", `{"id":"id-XX","new_id":"new-XX"}`), ""},
	{"break", "", leased, posted("/v1/break", `{"id":"id-XX","reason":"r"}`), "h"},
	{"break", "by path", leased, posted("/v1/break", `{"resource":"PATH","token":TOKEN,"reason":"r"}`), "h"},
	{"break", "by wrong token", leased, posted("/v1/break", `{"resource":"PATH","token":1,"reason":"r"}`), ""},
	{"break", "waiter", waiting, posted("/v1/break", `{"id":"id-XX","waiting":true,"reason":"r"}`), ""},
	{"move", "", waiting, posted("/v1/move", `{"id":"id-XX","priority":5}`), "h"},
	{"ask", "", leased, posted("/v1/ask", `{"resource":"PATH","message":"please"}`), "h"},
	{"acknowledge", "", leased, posted("/v1/acknowledge", `{"resource":"PATH","token":1,"by":"me","reason":"r"}`), ""},
	{"acknowledge-alarm", "", befores{alarm},
		posted("/v1/alarms/acknowledge", `{"kind":"held-long","resource":"PATH","id":"id-XX","occurrence":ORDER}`), ""},
	{"acknowledge-alarm", "older", befores{alarm},
		posted("/v1/alarms/acknowledge", `{"kind":"held-long","resource":"PATH","id":"id-XX","occurrence":1}`), ""},
	{"acquire", "task", befores{task}, posted("/v1/acquire", `{"resource":"PATH/","holder":"me","id":"new-XX","ttl":"1m"}`), ""},
	{"finishTask", "", befores{claimed}, posted("/v1/finish", `{"id":"id-XX","token":TOKEN,"outcome":"done"}`), ""},
	{"finishTask", "by wrong token", befores{claimed}, posted("/v1/finish", `{"id":"id-XX","token":1,"outcome":"done"}`), ""},
	{"reserve", "", inherent, posted("/v1/reservations", `{"resource":"PATH","holder":"me","id":"new-XX","length":"1h"}`), ""},
	{"reserve", "recurring", inherent, posted("/v1/reservations",
		`{"resource":"PATH","holder":"me","id":"new-XX","length":"1h","every":"day","at":"14:00","zone":"UTC"}`), ""},
	{"reserve", "taken", befores{begun}, posted("/v1/reservations", `{"resource":"PATH","holder":"me","id":"new-XX","length":"1h"}`), "h"},
	{"reserve", "same id", befores{reserved}, posted("/v1/reservations", `{"resource":"a/of-XX","holder":"me","id":"r-XX","length":"1h"}`), ""},
	{"acquire", "reservation", befores{begun}, posted("/v1/acquire", `{"resource":"PATH","holder":"me","id":"new-XX","reservation":"r-XX","ttl":"1m"}`), ""},
	{"cancelReservation", "", befores{reserved}, of("DELETE", "/v1/reservations/r-XX", ""), ""},
	{"cancelReservation", "series", befores{recurring}, of("DELETE", "/v1/reservations/r-XX", ""), ""},
	{"raise-tokens", "", inherent, posted("/v1/tokens/raise", `{"above":5000000,"reason":"r"}`), ""},
}

// stateRows are those that read, and those of definitions and sessions.
var stateRows = []row{
	{"resources", "", leased, get("/v1/resources?prefix=PATH"), "h"},
	{"resources", "all", leased, get("/v1/resources?limit=1000&holder=h-XX"), "h"},
	{"resource", "", leased, get("/v1/resources/PATH"), "h"},
	{"resource", "queue", waiting, get("/v1/resources/PATH"), "h"},
	{"advice", "", leased, get("/v1/advice/PATH"), ""},
	{"kinds", "", leased, get("/v1/kinds/PATH"), ""},
	{"alarms", "", befores{alarm}, get("/v1/alarms?prefix=PATH"), "h"},
	{"history", "", leased, get("/v1/history?resource=PATH"), "h"},
	{"audit", "", leased, get("/v1/audit?resource=PATH"), "h"},
	{"holds", "", befores{lease, func(w *world, p place) { w.do(p.owner, &core.Release{Namespace: p.space, ID: "id-" + p.x}) }},
		get("/v1/holds?resource=PATH"), "h"},
	{"report", "", befores{lease, func(w *world, p place) { w.do(p.owner, &core.Release{Namespace: p.space, ID: "id-" + p.x}) }},
		get("/v1/reports/PATH"), "h"},
	{"watch", "", leased, func(p place) request {
		r := get("/v1/watch?since=1&resource=PATH")(p)
		r.within, r.until = time.Second, "h-"+p.x
		return r
	}, "h"},
	{"definitions", "", befores{definition}, get("/v1/definitions?prefix=PATH"), "x"},
	{"definition", "", befores{definition}, get("/v1/definitions/PATH"), "x"},
	{"define", "", inherent, of("PUT", "/v1/definitions/PATH", `{"expected":"1m"}`), ""},
	{"define", "below", inherent, of("PUT", "/v1/definitions/PATH/", `{"expected":"1m"}`), ""},
	{"changeDefinition", "", befores{definition}, of("PATCH", "/v1/definitions/PATH", `{"expected":"2m"}`), ""},
	{"undefine", "", befores{definition}, of("DELETE", "/v1/definitions/PATH", ""), ""},
	{"pools", "", befores{pool}, get("/v1/pools?prefix=PATH"), "x"},
	{"pool", "", befores{pool}, get("/v1/pools/PATH"), "x"},
	{"tasks", "", befores{claimed}, get("/v1/tasks?prefix=PATH"), "h"},
	{"task", "", befores{claimed}, get("/v1/tasks/PATH/t"), "h"},
	{"putTask", "", inherent, of("PUT", "/v1/tasks/PATH/t", `{"value":"dg=="}`), ""},
	{"putTask", "over", befores{task}, of("PUT", "/v1/tasks/PATH/t", `{"value":"dg==","priority":5}`), ""},
	{"reservations", "", befores{reserved}, get("/v1/reservations?prefix=PATH"), "h"},
	{"reservations", "all", befores{reserved}, get("/v1/reservations?holder=h-XX"), "h"},
	{"reservation", "", befores{reserved}, get("/v1/reservations/r-XX"), "h"},
	{"reservation", "series", befores{recurring}, get("/v1/reservations/r-XX"), "h"},
	{"series", "", befores{recurring}, get("/v1/series?prefix=r-XX"), "h"},
	{"calendar", "", befores{reserved}, get("/v1/calendar?prefix=PATH"), "h"},
	{"setUnits", "", inherent, of("PUT", "/v1/pools/PATH", `{"host":"n1","units":[{"name":"g1"}]}`), ""},
	{"reportUse", "", befores{pool}, of("POST", "/v1/pools/PATH", `{"host":"n1","units":[{"name":"u-XX","percent":1}]}`), ""},
	{"drain", "", befores{pool}, of("PATCH", "/v1/pools/PATH", `{"units":["u-XX"],"why":"repair"}`), ""},
	{"openSession", "", inherent, posted("/v1/sessions", `{"id":"s-XX"}`), ""},
	{"sessions", "", befores{session}, get("/v1/sessions?prefix=s-XX"), "h"},
	{"session", "", befores{session}, get("/v1/sessions/s-XX"), "h"},
	{"renewSession", "", befores{session}, posted("/v1/sessions/s-XX/renew", ""), "h"},
	{"closeSession", "", befores{session}, of("DELETE", "/v1/sessions/s-XX", ""), ""},
	{"acquire", "in session", befores{session},
		posted("/v1/acquire", `{"resource":"a/of-XX","holder":"me","id":"new-XX","session":"s-XX"}`), ""},
	{"release", "of session", befores{session, lease}, posted("/v1/release", `{"ids":["id-XX"],"session":"s-XX"}`), ""},
}

var recorded = befores{record}

// recordRows are those of records, and of transactions.
var recordRows = []row{
	{"records", "", recorded, get("/v1/records?prefix=PATH"), "x"},
	{"records", "all", recorded, get("/v1/records?keys&limit=9&from=PATH"), "x"},
	{"records", "count", recorded, get("/v1/records?prefix=PATH&count&keys"), "x"},
	{"deleteRecords", "", recorded, of("DELETE", "/v1/records?prefix=PATH", ""), ""},
	{"record", "", recorded, get("/v1/records/PATH"), "v"},
	{"putRecord", "", inherent, of("PUT", "/v1/records/PATH", "new"), ""},
	{"putRecord", "over", recorded, of("PUT", "/v1/records/PATH", "new"), ""},
	{"putRecord", "if none", recorded, of("PUT", "/v1/records/PATH", "new", "If-None-Match", "*"), ""},
	{"putRecord", "under lease", leased, of("PUT", "/v1/records/a/by-XX", "new", "Leasehold-Lease", "id-XX"), ""},
	{"putRecord", "in session", befores{session}, of("PUT", "/v1/records/a/of-XX?session=s-XX", "new"), ""},
	{"putRecord", "counted", befores{session},
		of("PUT", "/v1/records/a/of-XX", "new", "Leasehold-Session", "s-XX", "Idempotency-Key", "1"), ""},
	{"deleteRecord", "", recorded, of("DELETE", "/v1/records/PATH", ""), ""},
	{"versions", "", recorded, get("/v1/versions/PATH"), ""},
	{"txn", "if record", recorded, txn(`{"if":[{"record":"PATH","field":"version","is":">"}]}`), ""},
	{"txn", "if value", recorded, txn(`{"if":[{"record":"PATH","field":"value","value":"eA=="}]}`), ""},
	{"txn", "if lease", leased, txn(`{"if":[{"resource":"PATH","field":"token","is":">"}]}`), ""},
	{"txn", "if id", leased, txn(`{"if":[{"resource":"PATH","field":"id","text":"id-XX"}]}`), ""},
	{"txn", "then put", inherent, txn(`{"then":[{"do":"put","path":"PATH","text":"t"}]}`), ""},
	{"txn", "else put", inherent, txn(`{"else":[{"do":"put","path":"PATH","text":"t"}]}`), ""},
	{"txn", "then delete", recorded, txn(`{"then":[{"do":"delete","path":"PATH"}]}`), ""},
	{"txn", "else delete", recorded, txn(`{"else":[{"do":"delete","path":"PATH"}]}`), ""},
	{"txn", "then delete all", recorded, txn(`{"then":[{"do":"delete","prefix":"PATH"}]}`), ""},
	{"txn", "then get", recorded, txn(`{"then":[{"do":"get","path":"PATH"}]}`), "x"},
	{"txn", "else get", recorded, txn(`{"else":[{"do":"get","path":"PATH"}]}`), ""},
	{"txn", "then get all", recorded, txn(`{"then":[{"do":"get","prefix":"PATH","count":true}]}`), "x"},
	{"txn", "then acquire", inherent, txn(`{"then":[{"do":"acquire","acquire":{"resource":"PATH","holder":"me"}}]}`), ""},
	{"txn", "else acquire", inherent, txn(`{"else":[{"do":"acquire","acquire":{"resource":"PATH","holder":"me"}}]}`), ""},
	{"txn", "then acquire also", inherent, txn(`{"then":[{"do":"acquire","acquire":{"resource":"a/also-XX",` +
		`"holder":"me","also":[{"resource":"PATH"}]}}]}`), ""},
	{"txn", "then release", leased, txn(`{"then":[{"do":"release","id":"id-XX"}]}`), ""},
	{"txn", "else release", leased, txn(`{"else":[{"do":"release","id":"id-XX"}]}`), ""},
	{"txn", "then put in session", befores{session},
		txn(`{"then":[{"do":"put","path":"a/of-XX","text":"t","session":"s-XX"}]}`), ""},
}

// clusterRows are about no namespace.
var clusterRows = []row{
	{"cluster", "", nil, get("/v1/cluster"), ""},
	{"addServer", "", nil, posted("/v1/cluster/members", `{"name":"n1","peer":"127.0.0.1:1"}`), ""},
	{"removeServer", "", nil, of("DELETE", "/v1/cluster/members/nobody", ""), ""},
	{"promoteServer", "", nil, posted("/v1/cluster/members/nobody/promote", ""), ""},
	{"upgradeCluster", "", nil, posted("/v1/cluster/upgrade", ""), ""},
	{"transferLead", "", nil, posted("/v1/cluster/transfer", `{"to":"nobody"}`), ""},
	{"limits", "", nil, get("/v1/cluster/limits"), ""},
	{"setLimits", "", nil, posted("/v1/cluster/limits", `{"leases":900000}`), ""},
	{"quarantine", "", nil, get("/v1/cluster/quarantine"), ""},
	{"endQuarantine", "", nil, posted("/v1/cluster/quarantine/end", `{"reason":"r"}`), ""},
	{"checkCluster", "", nil, get("/v1/cluster/check"), ""},
	{"doors", "", nil, get("/v1/cluster/doors"), ""},
	{"connect", "", nil, get("/v1/connect"), ""},
	{"backup", "", nil, get("/v1/cluster/backup"), ""},
	{"openapi", "", nil, get("/v1/openapi.yaml"), ""},
	{"livez", "", nil, get("/livez"), ""},
	{"readyz", "", nil, get("/readyz"), ""},
	{"healthz", "", nil, get("/healthz"), ""},
	{"metrics", "", nil, get("/metrics"), ""},
	{"version", "", nil, get("/version"), ""},
	{"index", "", nil, get("/"), ""},
}

// accessRows are about who may do what.
var accessRows = []row{
	{"access", "", nil, get("/v1/access"), ""},
	{"applyAccess", "", nil, posted("/v1/access/apply", `{"access":{},"dry_run":true}`), ""},
	{"canI", "", nil, get("/v1/access/can-i?verb=read&path=PATH"), ""},
	{"canI", "as another", nil, get("/v1/access/can-i?verb=read&path=PATH&as=vic"), ""},
	{"whoCan", "", nil, get("/v1/access/who-can?verb=read&path=PATH"), ""},
	{"whoami", "", nil, get("/v1/access/whoami"), ""},
	{"namespaces", "", nil, get("/v1/namespaces"), ""},
	{"accessTokens", "", nil, get("/v1/access/tokens"), ""},
	{"createToken", "", nil, posted("/v1/access/tokens", `{"principal":"new"}`), ""},
	{"revokeToken", "", nil, of("DELETE", "/v1/access/tokens/nothing", ""), ""},
	{"roles", "", nil, get("/v1/access/roles"), ""},
	{"putRole", "", nil, of("PUT", "/v1/access/roles/XX", `{"verbs":["read"]}`), ""},
	{"deleteRole", "", nil, of("DELETE", "/v1/access/roles/nothing", ""), ""},
	{"bindings", "", nil, get("/v1/access/bindings"), ""},
	{"putBinding", "", nil, of("PUT", "/v1/access/bindings/XX", `{"role":"viewer","principal":"new"}`), ""},
	{"deleteBinding", "", nil, of("DELETE", "/v1/access/bindings/nothing", ""), ""},
	{"quotas", "", nil, get("/v1/access/quotas"), ""},
	{"putQuota", "", nil, of("PUT", "/v1/access/quotas/principal%2FXX", `{"principal":"XX","leases":5}`), ""},
	{"deleteQuota", "", nil, of("DELETE", "/v1/access/quotas/principal%2Fnothing", ""), ""},
	{"issuers", "", nil, get("/v1/access/issuers"), ""},
	{"putIssuer", "", nil, of("PUT", "/v1/access/issuers/XX", `{"url":"https://XX.test","audiences":["a"]}`), ""},
	{"deleteIssuer", "", nil, of("DELETE", "/v1/access/issuers/nothing", ""), ""},
	{"certificates", "", nil, get("/v1/access/certificates"), ""},
	{"putCertificate", "", nil, of("PUT", "/v1/access/certificates/XX", `{"san":"dns:XX"}`), ""},
	{"deleteCertificate", "", nil, of("DELETE", "/v1/access/certificates/nothing", ""), ""},
}
