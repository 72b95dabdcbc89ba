package node

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

var update = flag.Bool("update", false, "write testdata/access.txt anew")

// A section of the table is what a door, or a part of one, can be asked.
type section struct {
	name string
	rows []row
}

var sections = []section{
	{name: "leases", rows: leaseRows}, {name: "state", rows: stateRows}, {name: "records", rows: recordRows},
	{name: "cluster", rows: clusterRows}, {name: "access", rows: accessRows}, {name: "terraform", rows: terraformRows}, {name: "azure", rows: azureRows},
	{name: "etcd", rows: etcdRows}, {name: "kubernetes", rows: kubernetesRows},
	{name: "consul", rows: consulRows}, {name: "mcp", rows: mcpRows},
}

// people have the ready roles, each for a/ of the namespace default; root has that of an admin for everything.
var people = []string{"none", "viewer", "member", "operator", "admin", "root"}

// columns are whose the thing is, and where: below a/ it is one's own or another's, below b/ and in another namespace it
// is another's.
var columns = []string{"own", "any", "b", "other"}

// skipped is the verdict of a cell for which the wire has no words.
const skipped = "?"

// A cell is one person's try.
type cell struct {
	*row
	place
	who     string
	verdict string
}

func cellsOf(section string, r *row, next *int) (cells []*cell) {
	for _, who := range people {
		for _, column := range columns {
			*next++
			c := &cell{row: r, who: who,
				place: place{space: leasehold.DefaultNamespace, prefix: "a/", x: fmt.Sprintf("q%04d", *next), owner: "vic",
					token: new(leasehold.Token), order: new(uint64)}}
			switch column {
			case "own":
				c.owner = who
			case "b":
				c.prefix = "b/"
			case "other":
				c.space, c.prefix = "other", "a/"
			}
			if column == "other" && slices.Contains([]string{"azure", "etcd", "kubernetes", "consul"}, section) {
				c.verdict = "-" // it keeps everything in one namespace
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// roles are the bindings by which the table is judged.
func roles(all []*cell) (list []*access.Binding) {
	list = append(list, bind("root", "admin", access.AllNamespaces, ""), bind("vic", "admin", access.AllNamespaces, ""))
	for _, role := range people[1 : len(people)-1] {
		list = append(list, bind(role, role, leasehold.DefaultNamespace, "a/"),
			bind(role, role, leasehold.DefaultNamespace, "terraform/a/"),
			bind(role, role, leasehold.DefaultNamespace, "kubernetes/a/"))
	}
	for _, c := range all {
		if c.prefix != "a/" || !access.IsReady(c.who) || !strings.HasPrefix(c.ask(c.place).path, "azure:") &&
			!strings.Contains(c.ask(c.place).path, "records/azure/") {
			continue
		}
		for _, root := range azureblob.Roots {
			list = append(list, bind(c.who, c.who, leasehold.DefaultNamespace, root+account+c.container()))
		}
	}
	return list
}

// TestWhoMayDoWhat asks everything that can be asked, in every role, of one's own and of others', over real connections.
// testdata/access.txt has the answers as they should be; -update writes those that are.
func TestWhoMayDoWhat(t *testing.T) {
	w := newWorld(t, nil)
	fillTable(t, w, testing.Short())
	everyKindOfCommand(t, w.engine.kinds)
}

// The same by RESP, as far as it has words.
func TestWhoMayDoWhatByRESP(t *testing.T) {
	if testing.Short() {
		t.Skip("left to: make test-all")
	}
	w := newWorld(t, nil)
	w.byRESP()
	fillTable(t, w, false)
	for _, s := range w.spoken {
		if name := strings.Join(s.name, " "); !w.sent[name] {
			t.Errorf("nothing in the table sends %s", name)
		}
	}
}

// fillTable has everybody try everything, and compares what is answered with what should be. If it is to be short, root
// tries everything, and the others a third each.
func fillTable(t *testing.T, w *world, short bool) {
	t.Helper()
	var all []*cell
	next := 0
	for i := range sections {
		for j := range sections[i].rows {
			all = append(all, cellsOf(sections[i].name, &sections[i].rows[j], &next)...)
		}
	}
	begin := access.Items{}
	for _, who := range append(people, "vic") {
		begin.Tokens = append(begin.Tokens, w.token(who))
		begin.Bindings = append(begin.Bindings, bind(who, "admin", access.AllNamespaces, ""))
	}
	w.change(&core.ChangeAccess{Put: begin})
	for i, c := range all {
		row, who := i/len(columns)/len(people), i/len(columns)%len(people)
		if short && c.who != "root" && (row+who)%3 != 0 || w.spoken != nil && w.words(c.ask(c.place)) == nil {
			c.verdict = skipped
		}
		for _, prepare := range c.before {
			if c.verdict == "" {
				prepare(w, c.place)
			}
		}
	}
	w.awaitAlarms(all)
	list := roles(all)
	for part := range slices.Chunk(list, 1000) {
		w.change(&core.ChangeAccess{Put: access.Items{Bindings: part}})
	}
	var gone access.Keys
	for _, b := range begin.Bindings {
		if b.Principal != "root" && b.Principal != "vic" {
			gone.Bindings = append(gone.Bindings, b.Name)
		}
	}
	w.change(&core.ChangeAccess{Remove: gone})
	w.engine.kinds = map[string]bool{}
	for _, c := range all {
		if c.verdict == "" {
			c.verdict = c.judge(w.ask(c.who, c.ask(c.place)))
		}
	}
	compareTable(t, all)
}

// awaitAlarms waits until all leases that are held for too long have their alarms.
func (w *world) awaitAlarms(all []*cell) {
	w.Helper()
	missing := map[string]*cell{}
	for _, c := range all {
		if strings.Contains(c.op, "alarm") && len(c.before) > 0 && c.verdict == "" {
			missing["id-"+c.x] = c
		}
	}
	for end := time.Now().Add(time.Minute); len(missing) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%d leases have no alarm", len(missing))
		}
		err := w.engine.Read(context.Background(), func(v core.View) {
			for _, space := range []string{leasehold.DefaultNamespace, "other"} {
				list, _ := v.Alarms(space, core.AlarmQuery{Kind: leasehold.HeldLong, Most: 1000})
				for _, a := range list {
					if c := missing[a.ID]; c != nil {
						*c.order = a.Order
						delete(missing, a.ID)
					}
				}
			}
		})
		if err != nil {
			w.Fatal(err)
		}
	}
}

// judge says in a word what came back.
func (c *cell) judge(r reply) string {
	shown := map[string]string{"h": "h-" + c.x, "v": "v-" + c.x, "x": c.x, "c": c.container()[1:],
		"l": fmt.Sprint(etcdLease(c.place))}[c.shows]
	switch {
	case r.status/100 == 2 && shown != "" && strings.Contains(r.body, shown):
		return "seen"
	case r.status/100 == 2 && shown != "":
		return "empty"
	case r.status/100 == 2:
		return "ok"
	case r.status == 403:
		return "denied"
	case r.status == 404:
		return "unknown"
	}
	if shown != "" && strings.Contains(r.body, shown) && c.shows != "x" {
		return r.code() + "+seen"
	}
	return r.code()
}

func compareTable(t *testing.T, all []*cell) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Who may do what: for each operation and role what is answered about one's own, about another's, about\n" +
		"# another's below another prefix, and about another's in another namespace. The roles are bound to a/ of the\n" +
		"# namespace default, root to everything. \"unknown\" is the answer that a thing gets which never was.\n")
	at := 0
	for _, s := range sections {
		fmt.Fprintf(&b, "\n%-34s", s.name)
		for _, who := range people {
			fmt.Fprintf(&b, "| %-42s", who+": "+strings.Join(columns, ", "))
		}
		b.WriteString("\n")
		for i := range s.rows {
			fmt.Fprintf(&b, "%-34s", strings.TrimSpace(s.rows[i].op+" "+s.rows[i].how))
			for range people {
				var words []string
				for range columns {
					words = append(words, all[at].verdict)
					at++
				}
				fmt.Fprintf(&b, "| %-42s", strings.Join(words, " "))
			}
			b.WriteString("\n")
		}
	}
	got := regexp.MustCompile(` +\n`).ReplaceAllString(b.String(), "\n")
	file := filepath.Join("testdata", "access.txt")
	if *update && !strings.Contains(got, skipped) {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(text), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(want) || !sameLine(line, want[i]) {
			t.Errorf("line %d is\n%s\nand should be\n%s", i+1, line, append(want, make([]string, i+1)...)[i])
		}
	}
}

// sameLine reports whether two lines of the table are the same but for what was skipped.
func sameLine(got, want string) bool {
	words := func(line string) []string { return strings.Fields(strings.ReplaceAll(line, "|", " | ")) }
	return slices.EqualFunc(words(got), words(want), func(a, b string) bool { return a == b || a == skipped })
}

// everyKindOfCommand fails if the table never sent a command of some kind.
func everyKindOfCommand(t *testing.T, sent map[string]bool) {
	t.Helper()
	ofServers := []string{"Tick", "Lead"}
	files, err := filepath.Glob("../core/command/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func \((?:\w+ )?\*(\w+)\) subject\(\)`).FindAllStringSubmatch(string(text), -1) {
			if found++; !sent[m[1]] && !slices.Contains(ofServers, m[1]) {
				t.Errorf("nothing in the table sends %s: add a row", m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d kinds of commands were found", found)
	}
}

// TestEveryOperationHasARow: an operation that the table does not have could be open to everybody, and nobody would
// notice.
func TestEveryOperationHasARow(t *testing.T) {
	rows := map[string]bool{}
	for _, s := range sections {
		for _, r := range s.rows {
			rows[r.op] = true
		}
	}
	for _, op := range etcdOpen {
		rows[op] = true
	}
	if len(doors) != 8 { // of which the console asks the API, and carries out nothing itself
		t.Errorf("there are %d doors: give the new one a section, and its operations below", len(doors))
	}
	for _, source := range []struct{ file, operation string }{
		{"../../api/v1/openapi.yaml", `(?m)^      operationId: (\S+)`},
		{"../door/terraform/operations.go", `(?m)^\t\{"([\w-]+)", of`},
		{"../door/azure/operations.go", `(?m)^\t\{"([\w-]+)", of`},
		{"../door/etcd/operations.go", `(?m)^\t\{name: "([\w-]+)", .* noted: "`},
		{"../door/kubernetes/operations.go", `(?m)^\t\{"([\w-]+)", `},
		{"../door/consul/operations.go", `(?m)^\t\{"([\w-]+)", `},
		{"../door/mcp/operations.go", `(?m)^\t\{name: "([\w-]+)", noted: "`},
	} {
		text, err := os.ReadFile(source.file)
		if err != nil {
			t.Fatal(err)
		}
		all := regexp.MustCompile(source.operation).FindAllStringSubmatch(string(text), -1)
		if len(all) < 7 {
			t.Errorf("%s has only %d operations", source.file, len(all))
		}
		for _, m := range all {
			if !rows[m[1]] {
				t.Errorf("%s has %s, and the table does not: say in a row who may", source.file, m[1])
			}
		}
	}
}
