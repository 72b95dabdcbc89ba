package native

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/api/v1/reports"
)

// A report has what has ended, by the journal, with the labels and units of each hold; what is held now; and what hosts
// reported, which is unknown for those that said nothing.
func TestReport(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "GET", "/v1/reports/gpu?by=colour", "").expect(400, "holder, host or label:NAME")
	ask(t, door, "GET", "/v1/reports/gpu?from=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z", "").expect(400, "from has to be before until")
	for _, host := range []string{"a", "b"} {
		ask(t, door, "PUT", "/v1/pools/gpu", `{"host":"`+host+`","units":[{"name":"`+host+`0"},{"name":"`+host+`1"}]}`).expect(200)
	}
	for _, body := range []string{
		`{"resource":"gpu","holder":"ann","id":"1","slots":3,"spread":true,"labels":{"team":"nlp"}}`,
		`{"resource":"gpu","holder":"bob","id":"2","slots":1,"labels":{"team":"nlp"}}`,
	} {
		ask(t, door, "POST", "/v1/acquire", body).expect(200)
	}
	time.Sleep(20 * time.Millisecond) // a hold of no time at all counts nothing
	ask(t, door, "POST", "/v1/release", `{"id":"1"}`).expect(200)
	ask(t, door, "GET", "/v1/holds?resource=gpu", "").expect(200, `"units":3,"labels":{"team":"nlp"}`)

	rows := func(by string) map[string]reports.Row {
		t.Helper()
		r := read[reports.Report](ask(t, door, "GET", "/v1/reports/gpu?by="+by, "").expect(200))
		if r.Total.Holds != 2 || r.Total.HeldMS < 4*15 || r.Total.BusyMS != nil {
			t.Errorf("the total by %s is %+v", by, r.Total)
		}
		found := map[string]reports.Row{}
		for _, row := range r.Rows {
			found[row.Name] = row
		}
		return found
	}
	if got := rows("holder"); got["ann"].Holds != 1 || got["bob"].Holds != 1 || got["ann"].HeldMS < 3*15 {
		t.Errorf("by holder: %+v", got)
	}
	if got := rows("label:team"); len(got) != 1 || got["nlp"].Holds != 2 {
		t.Errorf("by team: %+v", got)
	}
	if got := rows("host"); len(got) != 2 || got["a"].Holds+got["b"].Holds != 3 {
		t.Errorf("by host: %+v", got)
	}
}
