package v1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(v1.OpenAPI))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The document is a valid one, and every example in it is valid by its schema.
func TestOpenAPIIsValid(t *testing.T) {
	if err := load(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

// The document cannot drift from the types: every field of every type is in its schema and the
// other way round, and what is always there is required.
func TestOpenAPIHasEveryField(t *testing.T) {
	schemas := load(t).Components.Schemas
	for _, value := range []any{
		v1.AcquireRequest{}, v1.RenewRequest{}, v1.ReleaseRequest{}, v1.ChangeRequest{}, v1.BreakRequest{}, v1.SessionRequest{},
		v1.Lease{}, v1.Upcoming{}, v1.Resource{}, v1.Waiter{}, v1.Ending{}, v1.Session{}, v1.Event{}, v1.EventPage{}, v1.Hello{}, v1.Gone{}, v1.Cut{},
		v1.Version{}, v1.Nothing{}, v1.Problem{}, v1.Operation{}, v1.Hold{},
		v1.Record{}, v1.Large{}, v1.RecordVersion{}, v1.VersionPage{}, v1.RecordPage{}, v1.Deleted{}, v1.TxnRequest{}, v1.Compare{}, v1.Op{}, v1.Txn{}, v1.TxnResult{},
		v1.Usual{}, v1.Advice{}, v1.Alarm{}, v1.DefinitionRequest{}, v1.DefinitionChange{}, v1.Definition{},
		v1.Cluster{}, v1.Server{}, v1.ServerRequest{}, v1.TransferRequest{}, v1.Lead{}, v1.Sums{}, v1.Sum{},
		v1.Access{}, v1.AccessToken{}, v1.TokenRequest{}, v1.NewToken{}, v1.AccessRole{}, v1.AccessBinding{}, v1.AccessQuota{}, v1.AccessIssuer{}, v1.ClaimRule{}, v1.AccessCertificate{},
		v1.ApplyAccessRequest{}, v1.AppliedAccess{}, v1.AccessChange{}, v1.CanI{}, v1.WhoCan{}, v1.AccessReason{}, v1.Whoami{},
	} {
		kind := reflect.TypeOf(value)
		t.Run(kind.Name(), func(t *testing.T) {
			schema := schemas[kind.Name()]
			if schema == nil {
				t.Fatal("there is no such schema")
			}
			compareFields(t, kind, schema.Value)
		})
	}
}

func compareFields(t *testing.T, kind reflect.Type, schema *openapi3.Schema) {
	var names, always []string
	for i := range kind.NumField() {
		name, option, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		if option == "" {
			always = append(always, name)
		}
	}
	var described []string
	for name := range schema.Properties {
		described = append(described, name)
	}
	same(t, "fields", names, described)
	same(t, "required fields", always, schema.Required)
}

func same(t *testing.T, what string, ours, theirs []string) {
	t.Helper()
	ours, theirs = slices.Clone(ours), slices.Clone(theirs)
	slices.Sort(ours)
	slices.Sort(theirs)
	if !slices.Equal(ours, theirs) {
		t.Errorf("%s: the type has %q, openapi.yaml %q", what, ours, theirs)
	}
}

// The closed sets of words are the same in the document and in the dictionary.
func TestOpenAPIHasEveryWord(t *testing.T) {
	schemas := load(t).Components.Schemas
	var codes, states, hows, kinds, alarms []string
	for _, k := range leasehold.AlarmKinds {
		alarms = append(alarms, k.String())
	}
	for _, c := range leasehold.Codes {
		codes = append(codes, c.String())
	}
	for s := leasehold.Available; s.String() != "unknown"; s++ {
		states = append(states, s.String())
	}
	for h := leasehold.Released; h.String() != "unknown"; h++ {
		hows = append(hows, h.String())
	}
	for k := leasehold.Queued; k.String() != "unknown"; k++ {
		kinds = append(kinds, k.String())
	}
	same(t, "codes", codes, enum(schemas["Problem"].Value.Properties["code"].Value))
	same(t, "states", states, enum(schemas["State"].Value))
	same(t, "kinds of alarms", alarms, enum(schemas["AlarmKind"].Value))
	same(t, "ways to end", hows, enum(schemas["How"].Value))
	same(t, "verbs", v1.Verbs, enum(schemas["Verb"].Value))
	same(t, "kinds of events", kinds, enum(schemas["Event"].Value.Properties["kind"].Value))
}

func enum(schema *openapi3.Schema) (words []string) {
	for _, v := range schema.Enum {
		words = append(words, v.(string))
	}
	return words
}
