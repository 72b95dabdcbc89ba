package document

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core/access"
)

var noon = time.Unix(1e9, 0)

// full has one of everything, with every field.
func full() v1.Access {
	hash := strings.Repeat("ab", 32)
	return v1.Access{
		Roles: []v1.AccessRole{{Name: "deployer", Verbs: []string{"read", "acquire", "break:own"}, OnRevoke: "end"}},
		Bindings: []v1.AccessBinding{
			{Role: "admin", Principal: "root", Namespace: "*"},
			{Role: "deployer", Group: "ci", Prefix: "prod/", Holders: "ci"},
		},
		Quotas: []v1.AccessQuota{{Namespace: "team", Leases: 1, Sessions: 2, Waiters: 3, Records: 4, Bytes: 5, Watches: 6,
			Requests: 7, Renewals: 8}, {Principal: "*", Leases: 9}},
		Issuers: []v1.AccessIssuer{{Name: "gh", URL: "https://gh.example", Audiences: []string{"leasehold"}, Keys: "{}",
			Principal: "repository", Groups: []v1.ClaimRule{{Claim: "repository", Value: "acme/*", Group: "ci"}}}},
		Certificates: []v1.AccessCertificate{{Name: "agents", SAN: "dns:*.agents", Principal: "agent",
			Groups: []string{"ci"}}},
		Tokens: []v1.AccessToken{{ID: "t1", Principal: "root", Groups: []string{"ops"}, Description: "d", Hash: hash,
			Expires: &v1.Time{Time: noon.Add(time.Hour)}}},
	}
}

func policyOf(t *testing.T, doc v1.Access, current *access.Policy) *access.Policy {
	t.Helper()
	items, err := Items(doc, current, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := items.Check(); err != nil {
		t.Fatal(err)
	}
	p := current.With(current.Without(items), items)
	if err := p.Fits(); err != nil {
		t.Fatal(err)
	}
	return p
}

// What is exported can be applied, and changes nothing; and it has no hash.
func TestAnExportedDocumentChangesNothing(t *testing.T) {
	first := policyOf(t, full(), nil)
	doc := From(first)
	for _, token := range doc.Tokens {
		if token.Hash != "" {
			t.Errorf("the document has the hash of %s", token.ID)
		}
	}
	if second := policyOf(t, doc, first); len(Diff(first, second)) != 0 || first.Changes(access.Keys{}, second.Items()) {
		t.Errorf("applied again it changes %+v", Diff(first, second))
	}
	again := From(first)
	again.Tokens, doc.Tokens = nil, nil
	if !reflect.DeepEqual(again, doc) {
		t.Errorf("it differs: %+v", again)
	}
}

func TestDiffTellsEveryChange(t *testing.T) {
	before := policyOf(t, full(), nil)
	doc := full()
	doc.Roles[0].Verbs = []string{"read"}
	doc.Bindings = doc.Bindings[:1]
	doc.Bindings[0].Name = "root"
	doc.Quotas[1].Leases = 10
	doc.Issuers[0].Keys = "[]"
	doc.Certificates = nil
	doc.Tokens[0].Hash = strings.Repeat("cd", 32)
	doc.Tokens = append(doc.Tokens, v1.AccessToken{ID: "t2", Principal: "ann", Hash: strings.Repeat("ef", 32)})
	var got []string
	for _, c := range Diff(before, policyOf(t, doc, before)) {
		got = append(got, c.Action+" "+c.Kind+" "+c.Name)
		if strings.Contains(c.From+c.To, "abab") || strings.Contains(c.From+c.To, "cdcd") {
			t.Errorf("a change shows a hash: %+v", c)
		}
	}
	want := []string{"change role deployer", "add binding root", "remove binding admin:root@*",
		"remove binding deployer:group=ci@default/prod/", "change quota principal/*", "change issuer gh",
		"remove certificate agents", "add token t2", "change token t1"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMistakesInADocument(t *testing.T) {
	for _, c := range []struct {
		doc  v1.Access
		want string
	}{
		{v1.Access{Roles: []v1.AccessRole{{Name: "r", Verbs: []string{"fly"}}}},
			`role 1: unknown verb "fly"; known verbs: read,`},
		{v1.Access{Roles: []v1.AccessRole{{Name: "r", Verbs: []string{"read"}, OnRevoke: "x"}}}, "write keep or end"},
		{v1.Access{Roles: []v1.AccessRole{{Name: "r"}, {Name: "r"}}}, "role r is there twice"},
		{v1.Access{Tokens: []v1.AccessToken{{ID: "t", Principal: "p"}}}, "token t does not exist"},
		{v1.Access{Tokens: []v1.AccessToken{{ID: "t", Principal: "p", Hash: "12"}}}, "64 hexadecimal digits"},
	} {
		if _, err := Items(c.doc, nil, noon); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// The API's own list of verbs is that of the policy.
func TestVerbsAreKnownToTheAPI(t *testing.T) {
	if !slices.Equal(v1.Verbs, access.Names()) {
		t.Errorf("api/v1 has %q, the policy %q", v1.Verbs, access.Names())
	}
	var own []string
	for _, name := range access.Names() {
		if verb, _ := access.VerbOf(name); access.Verbs(access.Owned).Has(verb) {
			own = append(own, name)
		}
	}
	if !slices.Equal(v1.OwnVerbs, own) {
		t.Errorf("api/v1 has %q, the policy %q", v1.OwnVerbs, own)
	}
}

// What is read is good JSON of the API again, or an error that says what is wrong.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"bindings: [{role: admin, principal: root, namespace: '*'}]", `{"roles":[{"name":"r"}]}`,
		"a: &a [*a]", "tokens: 5", "", "---\n---\n", "1: 2", "quotas: [{leases: 1e99}]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := Parse(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("the error says nothing")
			}
			return
		}
		if _, err := Items(doc, nil, noon); err != nil && err.Error() == "" {
			t.Error("the error says nothing")
		}
	})
}

// docs/access.md has every verb, and says of each what the ready roles may do.
func TestVerbsAndRolesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range access.Names() {
		verb, _ := access.VerbOf(name)
		var cells []string
		for _, role := range access.Ready() {
			switch {
			case role.Any.Has(verb):
				cells = append(cells, "any")
			case role.Own.Has(verb):
				cells = append(cells, "own")
			default:
				cells = append(cells, "–")
			}
		}
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| .* \\| " + strings.Join(cells, " \\| ") + " \\|$")
		if !row.Match(page) {
			t.Errorf("docs/access.md has no row for %s that ends with %s", name, strings.Join(cells, " | "))
		}
	}
}
