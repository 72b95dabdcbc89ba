package node

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/resp"
)

// These tries need what only RESP has: a connection that knows who speaks, in which namespace, and what it waits for.
func TestAHostileNeighbourOnAConnection(t *testing.T) {
	w := newHouse(t)
	w.byRESP()
	before := w.possessions()
	for name, try := range map[string]func(*testing.T, *world){
		"a namespace for the whole connection":  tryGreeting,
		"a wait that is pushed":                 tryPushedWait,
		"another's key with a push":             tryPushedKey,
		"another's watch":                       tryUnwatch,
		"what the server tells of others":       tryServer,
		"a credential that is not good":         tryLogins,
		"commands around a login":               tryPipeline,
		"what was asked for before a new login": tryTakeover,
	} {
		t.Run(name, func(t *testing.T) { try(t, w) })
	}
	if after := w.possessions(); after != before {
		t.Errorf("Vic has now\n%s\nand had\n%s", after, before)
	}
}

// alike fails if a connection is answered otherwise about Vic's things than about what never was.
func (w *world) alike(t *testing.T, commands ...[]string) {
	t.Helper()
	var answers [2]string
	for i, word := range []string{word, never} {
		s := w.speak("ann")
		for _, words := range commands {
			said := strings.ReplaceAll(strings.Join(words, "\x00"), "W", word)
			answers[i] += told(s.do(strings.Split(strings.ReplaceAll(said, "#", "W"), "\x00")...)) + "\n"
		}
		s.conn.Close()
	}
	if want := strings.ReplaceAll(answers[1], never, word); answers[0] != want {
		t.Errorf("%q is answered\n%s\nand about what never was\n%s", commands, answers[0], want)
	}
}

// tryGreeting writes # where a W is meant.
func tryGreeting(t *testing.T, w *world) {
	hello := []string{"LH.HELLO", "NAMESPACE", "W"}
	w.alike(t, hello, []string{"LH.GET", "b/W"}, []string{"LH.LIST"}, []string{"LH.#ATCH", "SINCE", "1"}, []string{"LH.RECORD", "GET", "b/W"},
		[]string{"LH.RENE#", "id-W"}, []string{"LH.SESSION", "GET", "s-W"}, []string{"LH.ACQUIRE", "a/x", "HOLDER", "ann", "PUSH", "t"})
	w.alike(t, hello, []string{"RESET"}, []string{"LH.GET", "b/W"})
}

func tryPushedWait(t *testing.T, w *world) {
	acquire := []string{"LH.ACQUIRE", "b/W", "HOLDER", "ann", "#AIT", "1s", "PUSH", "t"}
	w.alike(t, acquire)
	w.alike(t, append(acquire, "NAMESPACE", "W"))
	w.alike(t, append(acquire, "ID", "wait-W"))
	w.alike(t, []string{"LH.ACQUIRE", "a/s", "HOLDER", "ann", "SESSION", "s-W", "#AIT", "1s", "PUSH", "t"})
}

func tryPushedKey(t *testing.T, w *world) {
	send := func(who, id string) reply {
		s := w.speak(who)
		defer s.conn.Close()
		return s.do("LH.ACQUIRE", "common/pushed", "HOLDER", "one", "ID", id, "KEY", "pushed", "WAIT", "1s", "PUSH", "t")
	}
	if got := send("vic", "pk1"); got.status != 200 || !strings.Contains(got.body, `"token"`) {
		t.Fatal(got.all())
	}
	if got := send("ann", "pk2"); strings.Contains(got.body, `"token"`) || strings.Contains(got.body, "pk1") {
		t.Errorf("with another's key ann gets %s", got.all())
	}
}

func tryUnwatch(t *testing.T, w *world) {
	vic := w.speak("vic")
	defer vic.conn.Close()
	if got := vic.do("LH.WATCH", "PREFIX", "common/", "TAG", "t"); got.status != 200 {
		t.Fatal(got.all())
	}
	ann := w.speak("ann")
	defer ann.conn.Close()
	ann.do("LH.UNWATCH", "t")
	if got := w.acquire(t, "vic", "common/seen", "seen", ""); got.status != 200 {
		t.Fatal(got.all())
	}
	if got := vic.next(); !strings.Contains(got.body, "common/seen") {
		t.Errorf("vic's watch shows %s", got.body)
	}
}

func tryServer(t *testing.T, w *world) {
	vic := w.speak("vic")
	defer vic.conn.Close()
	vic.do("CLIENT", "SETNAME", word)
	vic.do("LH.WATCH", "PREFIX", "b/"+word, "TAG", word)
	for _, who := range []string{"ann", ""} {
		s := w.speak(who)
		for _, words := range []string{"CLIENT LIST", "CLIENT INFO", "CLIENT GETNAME", "INFO", "INFO everything", "COMMAND", "COMMAND DOCS",
			"COMMAND LIST", "HELLO 3", "LH.HELLO", "LH.CLUSTER GET", "LH.CLUSTER LIMITS", "LH.AUDIT", "LH.HOLDS"} {
			if got := s.do(strings.Fields(words)...); strings.Contains(got.all(), word) {
				t.Errorf("%s tells %s", words, got.all())
			}
		}
		s.conn.Close()
	}
}

func tryLogins(t *testing.T, w *world) {
	good := w.tokens["vic"]
	for _, secret := range []string{good[:len(good)-1], good + "A", "t-vic", "vic", "lh_", "", strings.ToUpper(good)} {
		for _, words := range [][]string{{"AUTH", secret}, {"AUTH", "vic", secret}, {"HELLO", "3", "AUTH", "vic", secret}} {
			s := w.speak("")
			if got := s.do(words...); got.status == 200 || strings.Contains(got.body, good) {
				t.Errorf("%q is answered %s", words, got.all())
			}
			if got := s.do("LH.GET", "b/"+word); got.status != 401 && got.status != 429 || strings.Contains(got.body, "h-"+word) {
				t.Errorf("after %q it sees %s", words, got.all())
			}
			s.conn.Close()
		}
	}
}

// tryPipeline: each command is judged by who was known when its turn came, however many came together.
func tryPipeline(t *testing.T, w *world) {
	s := w.speak("")
	defer s.conn.Close()
	renew := []string{"LH.RENEW", "wait-" + word}
	var all []byte
	steps := []struct {
		words []string
		want  int
	}{
		{renew, 401}, {[]string{"AUTH", w.tokens["ann"]}, 200}, {renew, 404}, {renew, 404},
		{[]string{"AUTH", w.tokens["vic"]}, 200}, {renew, 409}, {[]string{"AUTH", w.tokens["ann"]}, 200}, {renew, 404},
		{[]string{"RESET"}, 200}, {renew, 0},
	}
	for _, step := range steps {
		all = resp.AppendCommand(all, step.words...)
	}
	if _, err := s.conn.Write(all); err != nil {
		t.Fatal(err)
	}
	for i, step := range steps {
		if got := s.next(); got.status != step.want {
			t.Errorf("command %d, %s, is answered %s", i, step.words[0], got.all())
		}
	}
}

// tryTakeover: a connection of a pool is handed from Vic to Ann. What Vic began is not told to Ann after the RESET.
func tryTakeover(t *testing.T, w *world) {
	s := w.speak("vic")
	defer s.conn.Close()
	for _, words := range [][]string{{"LH.WATCH", "PREFIX", "b/", "TAG", "t"},
		{"LH.ACQUIRE", "b/" + word, "HOLDER", "vic", "WAIT", "10s", "PUSH", "t"}} {
		if got := s.do(words...); got.status != 200 {
			t.Fatal(got.all())
		}
	}
	for got := s.do("RESET"); !strings.Contains(got.body, "RESET"); got = s.next() {
	}
	for _, words := range [][]string{{"HELLO", "3"}, {"LH.HELLO", "ERRORS", "json"}, {"AUTH", w.tokens["ann"]}} {
		s.do(words...)
	}
	w.do("vic", &core.PutRecord{Namespace: leasehold.DefaultNamespace, Path: "b/after", Value: "after"})
	if got := s.do("LH.GET", "a/mine"); !strings.Contains(got.body, `"a/mine"`) {
		t.Errorf("ann is told %s", got.all())
	}
	if got := s.do("LH.GET", "b/"+word); got.status != 403 {
		t.Errorf("ann is told %s", got.all())
	}
}
