package node

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/resp"
)

// What is asked by HTTP can be asked by RESP as well, and must be answered the same. The table and the tries are written
// once, as requests of HTTP; here they are said in words.

// A spoken operation is a command of RESP, as docs/doors/resp.md has it, which a test of the door holds to its table.
type spoken struct {
	name   []string // LH.SESSION RENEW
	first  []string // what stands before all keywords
	method string
	path   *regexp.Regexp
	known  []string // keywords
}

// commands reads the table of docs/doors/resp.md.
func commands(t testing.TB) (list []*spoken) {
	t.Helper()
	page, err := os.ReadFile("../../docs/doors/resp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(LH\\.[^`]+)` \\| `(\\w+) ([^`]+)` \\|(.*)\\|$").FindAllStringSubmatch(string(page), -1) {
		s := &spoken{method: m[2], known: append(strings.Fields(m[4]), "NAMESPACE", "KEY", "KEY_SESSION")}
		for _, word := range strings.Fields(m[1]) {
			switch {
			case word == strings.ToUpper(word) && word != "…":
				s.name = append(s.name, word)
			case word != "…":
				s.first = append(s.first, strings.Trim(word, "[]"))
			}
		}
		pattern := regexp.MustCompile(`\\\{(id|path|name)\\\}`).ReplaceAllStringFunc(regexp.QuoteMeta(m[3]), func(s string) string {
			name := strings.Trim(s, `\{}`)
			if name == "id" {
				return `(?P<id>[^/]+)`
			}
			return `(?P<` + name + `>.+)`
		})
		s.path = regexp.MustCompile(`^` + pattern + `$`)
		list = append(list, s)
	}
	if len(list) < 50 {
		t.Fatalf("docs/doors/resp.md has only %d commands", len(list))
	}
	return list
}

// heads are the keywords for what HTTP has in headers.
var heads = map[string]string{"If-Match": "IF_REVISION", "If-None-Match": "IF_ABSENT", v1.LeaseHeader: "LEASE",
	v1.TokenHeader: "TOKEN", v1.KeyHeader: "KEY", v1.SessionHeader: "KEY_SESSION"}

// words says a request in RESP; nil: there are no words for it.
func (w *world) words(r request) []string {
	path, query, _ := strings.Cut(r.path, "?")
	for _, s := range w.spoken {
		values := s.path.FindStringSubmatch(path)
		if s.method != r.method || values == nil {
			continue
		}
		given := map[string]string{} // by keyword or place
		for i, name := range s.path.SubexpNames()[1:] {
			given[name], _ = url.PathUnescape(values[i+1])
		}
		var last []string
		for _, pair := range strings.Split(query, "&") {
			name, value, has := strings.Cut(pair, "=")
			if value, _ = url.QueryUnescape(value); !has {
				value = "true"
			}
			switch keyword := strings.ToUpper(name); {
			case slices.Contains(s.first, name):
				given[name] = value
			case slices.Contains(s.known, keyword):
				last = append(last, keyword, value)
			case name != "":
				return nil
			}
		}
		said, ok := s.say(given, r)
		if !ok {
			return nil
		}
		w.sent[strings.Join(s.name, " ")] = true
		return append(said, last...)
	}
	return nil
}

// say says what is in the path, the body and the headers of a request.
func (s *spoken) say(given map[string]string, r request) (words []string, ok bool) {
	var fields map[string]json.RawMessage
	switch {
	case slices.Contains(s.first, "value"):
		given["value"] = r.body
	case slices.Contains(s.first, "json"):
		given["json"] = r.body
	case r.body != "" && json.Unmarshal([]byte(r.body), &fields) != nil:
		return nil, false
	}
	words = append(words, s.name...)
	for _, place := range s.first {
		value, is := given[place]
		if raw, in := fields[place]; in && !is {
			value, is = plain(raw), true
			delete(fields, place)
		}
		if is {
			words = append(words, value)
		} else if raw, in := fields[place+"s"]; in { // several
			var list []string
			_ = json.Unmarshal(raw, &list)
			words = append(words, list...)
			delete(fields, place+"s")
		}
	}
	for name, raw := range fields {
		words = append(words, strings.ToUpper(name), plain(raw))
	}
	for i := 0; i+1 < len(r.headers); i += 2 {
		name := heads[r.headers[i]]
		if !slices.Contains(s.known, name) {
			return nil, false
		}
		if words = append(words, name); name != "IF_ABSENT" {
			words = append(words, strings.Trim(r.headers[i+1], `"`))
		}
	}
	return words, true
}

// plain is a value of JSON as RESP has it.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		return text
	}
	return string(raw)
}

// A speaker is a connection over which somebody speaks RESP.
type speaker struct {
	w      *world
	conn   net.Conn
	reader *resp.Reader
}

// speak opens a connection for somebody; for nobody without a name.
func (w *world) speak(who string) *speaker {
	w.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		w.Fatal(err)
	}
	s := &speaker{w, conn, resp.NewReader(conn)}
	s.do("HELLO", "3")
	s.do("LH.HELLO", "ERRORS", "json")
	if who != "" {
		if got := s.do("AUTH", w.tokens[who]); got.status != 200 {
			w.Fatalf("%s cannot log in: %s", who, got.all())
		}
	}
	return s
}

func (s *speaker) do(words ...string) reply {
	s.w.Helper()
	s.send(words...)
	return s.next()
}

func (s *speaker) send(words ...string) {
	s.w.Helper()
	if _, err := s.conn.Write(resp.AppendCommand(nil, words...)); err != nil {
		s.w.Fatalf("%s: %v", words, err)
	}
}

func (s *speaker) next() reply {
	s.w.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	v, err := s.reader.Read()
	if err != nil {
		s.w.Fatal(err)
	}
	return replyOf(v)
}

// replyOf makes an answer of RESP one of HTTP.
func replyOf(v *resp.Value) reply {
	if v.Kind != resp.Error {
		text, _ := json.Marshal(plainOf(v))
		return reply{200, http.Header{}, string(text)}
	}
	_, text := v.Code()
	var problem struct{ Status int }
	_ = json.Unmarshal([]byte(text), &problem)
	return reply{problem.Status, http.Header{}, text}
}

// plainOf makes of an answer what encoding/json writes as HTTP has it.
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
		return v.Int
	case resp.Boolean:
		return v.Bool()
	case resp.Null:
		return nil
	}
	return string(v.Text)
}

// say sends a request as somebody by RESP, and reports whether there are words for it.
func (w *world) say(who string, r request) (reply, bool) {
	w.Helper()
	words := w.words(r)
	if words == nil {
		return reply{}, false
	}
	if words[0] == "LH.WATCH" {
		return w.watch(who, words, r), true
	}
	if w.speakers[who] == nil {
		w.speakers[who] = w.speak(who)
	}
	return w.speakers[who].do(words...), true
}

// watch follows events for a while.
func (w *world) watch(who string, words []string, r request) reply {
	w.Helper()
	s := w.speak(who)
	defer s.conn.Close()
	got := s.do(words...)
	for end := time.Now().Add(r.within); got.status == 200 && (r.until == "" || !strings.Contains(got.body, r.until)); {
		_ = s.conn.SetReadDeadline(end)
		v, err := s.reader.Read()
		if err != nil {
			break
		}
		got.body += fmt.Sprint("\n", replyOf(v).body)
	}
	return got
}

// byRESP makes everything that has words in RESP be said so.
func (w *world) byRESP() {
	w.spoken, w.sent, w.speakers = commands(w), map[string]bool{}, map[string]*speaker{}
	w.Cleanup(func() {
		for _, s := range w.speakers {
			s.conn.Close()
		}
	})
}
