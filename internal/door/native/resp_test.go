package native

import (
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/resp"
)

// A respClient speaks RESP by hand.
type respClient struct {
	t      testing.TB
	conn   net.Conn
	reader *resp.Reader
}

func newRESPClient(t testing.TB, conn net.Conn) *respClient {
	return &respClient{t, conn, resp.NewReader(conn)}
}

// speak opens a connection that speaks RESP3.
func (h *house) speak() *respClient {
	h.t.Helper()
	c := newRESPClient(h.t, h.raw(""))
	if v := c.do("HELLO", "3"); v.Kind != resp.Map {
		h.t.Fatalf("HELLO is answered by %v", plainOf(v))
	}
	return c
}

func (c *respClient) send(words ...string) {
	c.t.Helper()
	if _, err := c.conn.Write(resp.AppendCommand(nil, words...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *respClient) next() *resp.Value {
	c.t.Helper()
	v, err := c.reader.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

func (c *respClient) do(words ...string) *resp.Value {
	c.t.Helper()
	c.send(words...)
	return c.next()
}

// fields sends a command that is answered with a map.
func (c *respClient) fields(words ...string) map[string]any {
	c.t.Helper()
	v := c.do(words...)
	m, ok := plainOf(v).(map[string]any)
	if !ok {
		c.t.Fatalf("%s is answered by %v", strings.Join(words, " "), plainOf(v))
	}
	return m
}

// fails sends a command that is answered with an error of a code, which says some text.
func (c *respClient) fails(code, text string, words ...string) {
	c.t.Helper()
	v := c.do(words...)
	got, said := v.Code()
	if v.Kind != resp.Error || got != code || !strings.Contains(said, text) {
		c.t.Errorf("%s is answered by %v, want %s … %s", strings.Join(words, " "), plainOf(v), code, text)
	}
}

// plainOf makes of an answer what encoding/json would.
func plainOf(v *resp.Value) any {
	switch v.Kind {
	case resp.Map:
		m := map[string]any{}
		for i := 0; i < len(v.Items); i += 2 {
			m[string(v.Items[i].Text)] = plainOf(&v.Items[i+1])
		}
		return m
	case resp.Array, resp.Push:
		list := []any{}
		for i := range v.Items {
			list = append(list, plainOf(&v.Items[i]))
		}
		return list
	case resp.Integer:
		return float64(v.Int)
	case resp.Boolean:
		return v.Bool()
	case resp.Null:
		return nil
	case resp.Error:
		return "-" + string(v.Text)
	}
	return string(v.Text)
}

// One lease, told over both wires: the same fields with the same values, but for what cannot be the same.
func TestBothWiresTellTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		c := h.speak()
		defer c.conn.Close()
		for _, step := range []struct {
			method, path, body string
			words              string
		}{
			{"POST", "/v1/acquire", `{"resource":"NAME/x","holder":"ci","id":"NAME1","ttl":"30s","labels":{"team":"a","host":"b"},"reason":"why"}`,
				"LH.ACQUIRE NAME/x HOLDER ci ID NAME1 TTL 30s LABEL team=a label host=b REASON why"},
			{"POST", "/v1/renew", `{"id":"NAME1","note":"half"}`, "LH.RENEW NAME1 NOTE half"},
			{"GET", "/v1/resources/NAME/x", "", "LH.GET NAME/x"},
			{"GET", "/v1/resources?prefix=NAME/&limit=5&label=team%3Da", "", "LH.LIST PREFIX NAME/ LIMIT 5 LABEL team=a"},
			{"POST", "/v1/change", `{"id":"NAME1","holder":"other"}`, "LH.CHANGE NAME1 HOLDER other"},
			{"POST", "/v1/ask", `{"resource":"NAME/x","message":"hurry"}`, "LH.ASK NAME/x MESSAGE hurry"},
			{"POST", "/v1/break", `{"id":"NAME1","period":"0s","by":"op"}`, "LH.BREAK NAME1 PERIOD 0s BY op"},
			{"POST", "/v1/acquire", `{"resource":"NAME/y","holder":"ci","id":"NAME2","slots":2,"capacity":3,"ttl":null}`,
				"LH.ACQUIRE NAME/y HOLDER ci ID NAME2 SLOTS 2 CAPACITY 3 TTL none"},
			{"POST", "/v1/release", `{"id":"NAME2"}`, "LH.RELEASE NAME2"},
			{"POST", "/v1/sessions", `{"id":"NAMEs","ttl":"20s","labels":{"a":"b"}}`, "LH.SESSION OPEN ID NAMEs TTL 20s LABEL a=b"},
			{"POST", "/v1/sessions/NAMEs/renew?seen=0", "", "LH.SESSION RENEW NAMEs SEEN 0"},
			{"GET", "/v1/sessions/NAMEs", "", "lh.session get NAMEs"},
			{"DELETE", "/v1/sessions/NAMEs", "", "LH.SESSION CLOSE NAMEs"},
			{"PUT", "/v1/records/NAME/r", "hello", "LH.RECORD PUT NAME/r hello"},
			{"GET", "/v1/records?prefix=NAME/&keys", "", "LH.RECORD LIST PREFIX NAME/ KEYS"},
			{"DELETE", "/v1/records/NAME/r", "", "LH.RECORD DEL NAME/r"},
			{"PUT", "/v1/definitions/NAME/d", `{"capacity":3,"hold_limit":"1h"}`, "LH.DEFINITION PUT NAME/d CAPACITY 3 HOLD_LIMIT 1h"},
			{"PATCH", "/v1/definitions/NAME/d", `{"hold_limit":"2h"}`, "LH.DEFINITION CHANGE NAME/d HOLD_LIMIT 2h"},
			{"GET", "/v1/definitions/NAME/d", "", "LH.DEFINITION GET NAME/d"},
			{"GET", "/v1/advice/NAME/x", "", "LH.ADVICE NAME/x"},
			{"GET", "/v1/cluster/limits", "", "LH.CLUSTER LIMITS"},
			{"GET", "/v1/access/whoami", "", "LH.ACCESS WHOAMI"},
			{"POST", "/v1/txn", `{"then":[{"do":"get","prefix":"NAME/"}]}`, `LH.TXN {"then":[{"do":"get","prefix":"NAME/"}]}`},
		} {
			set := strings.NewReplacer("NAME", "h")
			a := ask(t, h.door, step.method, set.Replace(step.path), set.Replace(step.body))
			if a.status != 200 {
				t.Errorf("%s %s: %d %s", step.method, step.path, a.status, a.body)
			}
			var byHTTP any
			if err := json.Unmarshal([]byte(a.body), &byHTTP); err != nil {
				t.Fatal(err)
			}
			if page, ok := byHTTP.(map[string]any); ok && page["items"] != nil {
				page["revision"] = a.header.Get(v1.RevisionHeader)
			}
			set = strings.NewReplacer("NAME", "r")
			got := plainOf(c.do(strings.Fields(set.Replace(step.words))...))
			if m, ok := byHTTP.(map[string]any); ok && len(m) == 0 {
				if got != "OK" {
					t.Errorf("%s is answered by %v", step.words, got)
				}
				continue
			}
			if want := same(byHTTP); !reflect.DeepEqual(same(got), want) {
				t.Errorf("%s\nby RESP %v\nby HTTP %v", step.words, same(got), want)
			}
		}
	})
}

// same takes away what two leases never have alike: numbers that count on, and names that begin with another letter.
func same(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, value := range v {
			switch key {
			case "token", "floor", "revision", "create_revision", "mod_revision", "interventions":
				value = "counted"
			}
			m[key] = same(value)
		}
		return m
	case []any:
		list := []any{}
		for _, value := range v {
			list = append(list, same(value))
		}
		return list
	case string:
		if strings.HasPrefix(v, "r") || strings.HasPrefix(v, "h") {
			return "_" + v[1:]
		}
	}
	return v
}

// What is wrong is said in the words of HTTP, with a code in front.
func TestRESPErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.acquire(v1.AcquireRequest{Resource: "taken", Holder: "somebody", ID: "x"})
		c := h.speak()
		defer c.conn.Close()
		c.fails("HELD", "somebody", "LH.ACQUIRE", "taken", "HOLDER", "me")
		c.fails("NOTFOUND", "is unknown", "LH.RENEW", "nosuch")
		c.fails("NOTFOUND", "no record", "LH.RECORD", "GET", "nosuch")
		c.fails("INVALID", `keyword "TTLL" is unknown; known are: NAMESPACE, RESOURCE, HOLDER`, "LH.ACQUIRE", "r", "TTLL", "3s")
		c.fails("INVALID", "keyword HOLDER has no value", "LH.ACQUIRE", "r", "HOLDER")
		c.fails("INVALID", "keyword HOLDER is given twice", "LH.ACQUIRE", "r", "HOLDER", "a", "holder", "b")
		c.fails("INVALID", "holder is missing", "LH.ACQUIRE", "r")
		c.fails("INVALID", "ttl: ", "LH.ACQUIRE", "r", "HOLDER", "h", "TTL", "soon")
		c.fails("INVALID", "capacity: ", "LH.ACQUIRE", "r", "HOLDER", "h", "CAPACITY", "many")
		c.fails("INVALID", "not valid UTF-8", "LH.ACQUIRE", "r\xff", "HOLDER", "h")
		c.fails("INVALID", "limit", "LH.LIST", "LIMIT", "0")
		c.fails("INVALID", "unknown field", "LH.ACQUIRE", "r", "HOLDER", "h", "ALSO", `[{"nosuch":1}]`)
		c.fails("INVALID", "push is missing", "LH.ACQUIRE", "r", "HOLDER", "h", "PUSH", "")
		old := newRESPClient(t, h.raw(""))
		defer old.conn.Close()
		old.fails("INVALID", "PUSH needs RESP3", "LH.ACQUIRE", "r", "HOLDER", "h", "PUSH", "t")
		c.fails("ERR", "wrong number of arguments", "LH.ACQUIRE")
		c.fails("ERR", "unknown command", "LH.NOSUCH")
		c.fails("ERR", "LH.ACQUIRE takes a lease", "SET", "lock", "me", "NX", "PX", "30000")
		c.fails("ERR", "unknown subcommand", "LH.SESSION", "NOSUCH")
		c.fails("INVALID", "at most 65536", "LH.RECORD", "PUT", "r", strings.Repeat("x", 65537))
		if got := c.fields("LH.HELLO", "ERRORS", "json"); got["server"] != "leasehold" || got["level"] == nil {
			t.Errorf("LH.HELLO is answered by %v", got)
		}
		v := c.do("LH.ACQUIRE", "taken", "HOLDER", "me")
		code, text := v.Code()
		var p v1.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || code != "HELD" || p.Holder != "somebody" || p.Status != 409 {
			t.Errorf("%s %s: %v", code, text, err)
		}
	})
}

// Commands that came together are answered in their order, those that wait and those that fail among them.
func TestRESPPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		c := h.speak()
		defer c.conn.Close()
		var all []byte
		const many = 3000
		for i := range many {
			all = resp.AppendCommand(all, "LH.ACQUIRE", fmt.Sprint("r", i), "HOLDER", "h", "ID", fmt.Sprint("id", i))
			if i%10 == 0 {
				all = resp.AppendCommand(all, "PING", fmt.Sprint(i))
			}
		}
		all = resp.AppendCommand(all, "LH.ACQUIRE", "r0", "HOLDER", "late", "WAIT", "5s")
		all = resp.AppendCommand(all, "LH.RELEASE", "id1", "id2", "id3")
		go c.conn.Write(all)
		for i := range many {
			if m := plainOf(c.next()).(map[string]any); m["id"] != fmt.Sprint("id", i) {
				t.Fatalf("answer %d is %v", i, m)
			}
			if i%10 == 0 && plainOf(c.next()) != fmt.Sprint(i) {
				t.Fatalf("no pong after %d", i)
			}
		}
		began := time.Now()
		if code, _ := c.next().Code(); code != "HELD" || time.Since(began) != 5*time.Second {
			t.Errorf("after %v the one that waits is told %s", time.Since(began), code)
		}
		if got := plainOf(c.next()); got != "OK" {
			t.Errorf("the release is answered by %v", got)
		}
		ask(t, h.door, "GET", "/metrics", "").expect(200, "leasehold_resp_connections 1", "leasehold_resp_commands_total 3303")
	})
}

// A wait blocks its connection, or is answered by a push.
func TestRESPWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.hold("r", "first")
		c := h.speak()
		defer c.conn.Close()
		got := c.fields("LH.ACQUIRE", "r", "HOLDER", "second", "ID", "two", "WAIT", "60s", "PUSH", "t1")
		if got["waiting"] != true || got["id"] != "two" || got["position"] != 1.0 {
			t.Errorf("the wait is answered by %v", got)
		}
		if got := plainOf(c.do("PING")); got != "PONG" {
			t.Errorf("meanwhile: %v", got)
		}
		c.fails("HELD", "", "LH.RENEW", "two")
		if got := plainOf(c.do("LH.RELEASE", "first")); got != "OK" {
			t.Fatal(got)
		}
		push := plainOf(c.next()).([]any)
		lease, _ := push[2].(map[string]any)
		if push[0] != "lh.acquire" || push[1] != "t1" || lease["holder"] != "second" || lease["waited_ms"] == nil {
			t.Errorf("pushed: %v", push)
		}
		if got := c.fields("LH.ACQUIRE", "free", "HOLDER", "h", "WAIT", "5s", "PUSH", "t2"); got["resource"] != "free" {
			t.Errorf("a free one: %v", got)
		}
		other := h.speak()
		defer other.conn.Close()
		other.send("LH.ACQUIRE", "r", "HOLDER", "third", "WAIT", "60s")
		synctest.Wait()
		c.do("LH.RELEASE", "two")
		if m, _ := plainOf(other.next()).(map[string]any); m["holder"] != "third" {
			t.Errorf("the third gets %v", m)
		}
		late := c.fields("LH.ACQUIRE", "r", "HOLDER", "late", "ID", "late", "WAIT", "1s", "PUSH", "t3")
		if late["waiting"] != true {
			t.Errorf("late: %v", late)
		}
		if push := plainOf(c.next()).([]any); push[1] != "t3" || !strings.HasPrefix(fmt.Sprint(push[2]), "-HELD") {
			t.Errorf("the late one is pushed %v", push)
		}
	})
}

// Who leaves while it waits, and proposed no id, waits no more.
func TestRESPWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.hold("r", "first")
		for _, words := range [][]string{{"LH.ACQUIRE", "r", "HOLDER", "gone", "WAIT", "60s"},
			{"LH.ACQUIRE", "r", "HOLDER", "gone", "WAIT", "60s", "PUSH", "t"}} {
			c := h.speak()
			c.send(words...)
			synctest.Wait()
			if n := h.resource("r").Waiting; n != 1 {
				t.Errorf("%d wait", n)
			}
			c.conn.Close()
			synctest.Wait()
			if n := h.resource("r").Waiting; n != 0 {
				t.Errorf("%d wait after the client left", n)
			}
		}
	})
}

// A watch pushes what happens, beside other commands; with RESP2 there is nothing else on the connection.
func TestRESPWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		c := h.speak()
		defer c.conn.Close()
		hello := c.fields("LH.WATCH", "PREFIX", "a/", "TAG", "w1")
		if hello["tag"] != "w1" || hello["namespace"] != "default" || hello["position"] == nil {
			t.Errorf("the watch is answered by %v", hello)
		}
		c.fails("INVALID", "used by another watch", "LH.WATCH", "TAG", "w1")
		h.hold("a/x", "me")
		push := plainOf(c.next()).([]any)
		event, _ := push[2].(map[string]any)
		if push[0] != "lh.watch" || push[1] != "w1" || event["id"] != "me" || event["kind"] != "acquired" {
			t.Errorf("pushed: %v", push)
		}
		time.Sleep(keepAlive)
		if push := plainOf(c.next()).([]any); push[0] != "lh.here" {
			t.Errorf("after a while: %v", push)
		}
		if got := plainOf(c.do("LH.UNWATCH", "w1")); got != "OK" {
			t.Errorf("unwatch: %v", got)
		}
		c.fails("NOTFOUND", "no watch", "LH.UNWATCH", "w1")

		old := newRESPClient(t, h.raw(""))
		defer old.conn.Close()
		if got := plainOf(old.do("LH.WATCH", "SINCE", "0")).([]any); got[0] != "tag" || got[1] != "watch" {
			t.Errorf("RESP2 is answered by %v", got)
		}
		if push := plainOf(old.next()).([]any); push[0] != "lh.watch" || push[1] != "watch" {
			t.Errorf("RESP2: %v", push)
		}
		old.fails("ERR", "only LH.WATCH", "LH.LIST")
		if got := plainOf(old.do("LH.UNWATCH", "watch")); got != "OK" {
			t.Error(got)
		}
		if got := plainOf(old.do("LH.GET", "a/x")).([]any); got[0] != "namespace" {
			t.Errorf("RESP2 after the watch: %v", got)
		}
	})
}

// Every operation has a command, but for those that are streams of bytes; and no two have the same.
func TestEveryOperationHasACommand(t *testing.T) {
	names := map[string]string{}
	for i := range operations {
		o := &operations[i]
		if o.resp == "" {
			if o.name != "backup" && o.name != "calendar" {
				t.Errorf("%s has no command", o.name)
			}
			continue
		}
		g := o.grammar()
		if other := names[g.Name]; other != "" {
			t.Errorf("%s is the command of %s and of %s", g.Name, o.name, other)
		}
		names[g.Name] = o.name
		if names := g.Unfilled(o.path); len(names) > 0 {
			t.Errorf("%s: nothing takes %v", g.Name, names)
		}
		for _, part := range strings.Split(o.path, "/") {
			if name := strings.Trim(part, "{.}"); name != part && !strings.Contains(" "+o.resp+" ", " "+name+" ") {
				t.Errorf("%s: nothing gives %s of %s", g.Name, name, o.path)
			}
		}
		seen := map[string]bool{}
		for _, word := range g.Known {
			if seen[word] {
				t.Errorf("%s: %s means two things", g.Name, word)
			}
			seen[word] = true
		}
	}
}
