package native

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/reservations"
)

func TestReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		now := time.Now() // midnight UTC, a Saturday
		at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
		reserve := func(format string, args ...any) answer {
			return ask(t, door, "POST", "/v1/reservations", fmt.Sprintf(format, args...))
		}
		first := read[reservations.Reservation](reserve(
			`{"id":"demo","resource":"staging","holder":"ann","reason":"demo","from":"%s","length":"2h"}`, at(time.Hour)).
			expect(200, `"state":"planned"`, `"resource":"staging"`))
		if first.From.Sub(now) != time.Hour || first.Until.Sub(now) != 3*time.Hour {
			t.Errorf("it is %+v", first)
		}
		// The answer was lost.
		reserve(`{"id":"demo","resource":"staging","holder":"ann","reason":"demo","from":"%s","length":"2h"}`, at(time.Hour)).expect(200, `"id":"demo"`)
		// Who is in the way, and when it is free.
		reserve(`{"resource":"staging","holder":"bob","from":"%s","length":"1h"}`, at(2*time.Hour)).
			expect(409, "staging is reserved by ann (demo) from "+at(time.Hour)+" to "+at(3*time.Hour), "free for 1h from "+at(3*time.Hour))
		second := read[reservations.Reservation](reserve(`{"resource":"staging","holder":"bob","from":"%s","length":"1h"}`, at(3*time.Hour)).expect(200))

		list := read[v1.List[reservations.Reservation]](ask(t, door, "GET", "/v1/reservations?limit=1", "").expect(200, `"demo"`))
		if len(list.Items) != 1 || list.Next == "" {
			t.Fatalf("listed %+v", list)
		}
		ask(t, door, "GET", "/v1/reservations?after="+list.Next, "").expect(200, second.ID)
		for query, want := range map[string][2]string{
			"resource=staging&until=" + at(2*time.Hour): {"demo", second.ID}, "from=" + at(3*time.Hour): {second.ID, "demo"},
			"holder=bob": {second.ID, "demo"}, "prefix=stag&holder=ann": {"demo", second.ID}, "prefix=other": {`"items":[]`, "demo"},
		} {
			if got := ask(t, door, "GET", "/v1/reservations?"+query, "").expect(200, want[0]); strings.Contains(got.body, want[1]) {
				t.Errorf("%s shows %s", query, got.body)
			}
		}

		// Who gets it before is told, and a claim that is early waits or is told when to come.
		held := read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"staging","holder":"eve","ttl":"1d"}`).expect(200))
		if held.Reserved == nil || held.Reserved.ID != "demo" || held.Reserved.Holder != "ann" || held.Reserved.From.Sub(now) != time.Hour {
			t.Errorf("it is reserved %+v", held.Reserved)
		}
		ask(t, door, "POST", "/v1/acquire", `{"resource":"staging","holder":"ann","reservation":"demo"}`).expect(409, "reservation demo begins at "+at(time.Hour))
		ask(t, door, "POST", "/v1/release", `{"id":"`+held.ID+`"}`).expect(200)
		time.Sleep(time.Hour + time.Second)
		ask(t, door, "POST", "/v1/acquire", `{"resource":"staging","holder":"eve"}`).expect(409, "ann")
		ask(t, door, "GET", "/v1/reservations/demo", "").expect(200, `"state":"begun"`, `"claim_by":"`+now.Add(75*time.Minute).UTC().Format("2006-01-02T15:04:0"))
		claim := read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"staging","holder":"ann","reservation":"demo","ttl":"1m"}`).expect(200))
		ask(t, door, "GET", "/v1/reservations/demo", "").expect(200, `"state":"in use"`, claim.ID)
		if claim.Warning != "" {
			t.Error(claim.Warning)
		}
		ask(t, door, "POST", "/v1/release", `{"id":"`+claim.ID+`"}`).expect(200)
		ask(t, door, "GET", "/v1/reservations/demo", "").expect(200, `"state":"over"`, `"why":"its lease ended`)
		ask(t, door, "GET", "/v1/audit?verb=begin-reservation", "").expect(200)

		ask(t, door, "DELETE", "/v1/reservations/"+second.ID+"?by=bob&reason=ill", "").expect(200)
		ask(t, door, "DELETE", "/v1/reservations/"+second.ID, "").expect(200) // its answer was lost
		ask(t, door, "DELETE", "/v1/reservations/none", "").expect(404, "is unknown: it never was")
		ask(t, door, "GET", "/v1/reservations/none", "").expect(404, "is unknown")
	})
}

func TestRecurringReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		series := read[reservations.Reservation](ask(t, door, "POST", "/v1/reservations",
			`{"id":"daily","resource":"bench","holder":"ann","length":"4h","every":"weekdays","at":"14:00","zone":"Europe/Berlin"}`).expect(200))
		// 1 January 2000 was a Saturday.
		if series.Rule == nil || series.Rule.Every != "weekdays" || series.Rule.At != "14:00" || series.Rule.Zone != "Europe/Berlin" ||
			series.From == nil || series.From.UTC().Format(time.RFC3339) != "2000-01-03T13:00:00Z" || series.State != "planned" {
			t.Errorf("it is %+v, with %+v", series, series.Rule)
		}
		list := read[v1.List[reservations.Reservation]](ask(t, door, "GET", "/v1/reservations", "").expect(200))
		if len(list.Items) != 10 || list.Items[9].ID != "daily@20000114T130000Z" || list.Items[9].Series != "daily" {
			t.Errorf("planned are %+v", list.Items)
		}
		ask(t, door, "GET", "/v1/series", "").expect(200, `"every":"weekdays"`, `"length":"4h"`)
		ask(t, door, "POST", "/v1/reservations", `{"resource":"bench","holder":"bob","length":"1h","from":"2000-01-03T16:00:00Z"}`).expect(409,
			"free for 1h from 2000-01-03T17:00:00Z, 2000-01-04T17:00:00Z, 2000-01-05T17:00:00Z")
		ask(t, door, "DELETE", "/v1/reservations/daily@20000103T130000Z", "").expect(200)
		ask(t, door, "GET", "/v1/reservations/daily", "").expect(200, "2000-01-04T13:00:00")
		ask(t, door, "DELETE", "/v1/reservations/daily", "").expect(200)
		ask(t, door, "GET", "/v1/reservations", "").expect(200, `"items":[]`)
		ask(t, door, "GET", "/v1/series", "").expect(200, `"items":[]`)
	})
}

func TestReservationsThatAreRefused(t *testing.T) {
	door := newDoor(t, Config{})
	for body, said := range map[string]string{
		`{"resource":"r","length":"1h"}`:                                                                                     "holder is missing",
		`{"resource":"r","holder":"h"}`:                                                                                      "length 0s is out of range",
		`{"resource":"r","holder":"h","length":"31d"}`:                                                                       "(30 days) are allowed",
		`{"resource":"r","holder":"h","length":"1h","at":"14:00"}`:                                                           "say every",
		`{"resource":"r","holder":"h","length":"1h","every":"weekdays","zone":"UTC"}`:                                        "at: ",
		`{"resource":"r","holder":"h","length":"1h","every":"weekdays","at":"14:00"}`:                                        "zone: ",
		`{"resource":"r","holder":"h","length":"1h","every":"often","at":"14:00","zone":"UTC"}`:                              "allowed are day, weekdays",
		`{"resource":"r","holder":"h","length":"1h","every":"day","at":"14:00","zone":"UTC","until":"2001-01-01T00:00:00Z"}`: "nothing begins before that",
		`{"resource":"r","holder":"h","length":"1h","from":"9999-01-01T00:00:00Z"}`:                                          "from is out of range",
		`{"resource":"r","holder":"h","length":"1h","from":"soon"}`:                                                          "from",
		`{"resource":"r","holder":"h","length":"1h","id":"a@b"}`:                                                             "only the ids of occurrences have",
		`{"resource":"r","holder":"h","length":"1h","where":"model=H100"}`:                                                   "say so with slots",
		`{"resource":"a//b","holder":"h","length":"1h"}`:                                                                     "resource",
		`{"resource":"r","holder":"h","length":"25h","every":"day","at":"14:00","zone":"UTC"}`:                               "before it ends",
	} {
		got := ask(t, door, "POST", "/v1/reservations", body)
		if got.status != 400 && got.status != 422 || !strings.Contains(got.body, said) {
			t.Errorf("%s: %d %s, want %s", body, got.status, got.body, said)
		}
	}
	for query, said := range map[string]string{
		"resource=r&prefix=p": "two things", "from=soon": "not a time", "from=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": "not later than from", "resource=": "resource",
	} {
		ask(t, door, "GET", "/v1/reservations?"+query, "").expect(400, said)
		ask(t, door, "GET", "/v1/calendar?"+query, "").expect(400, said)
	}
	ask(t, door, "PUT", "/v1/definitions/r", `{"on_reservation":"fight"}`).expect(400, "wait, warn or end")
	ask(t, door, "PUT", "/v1/definitions/r", `{"on_reservation":"end"}`).expect(200, `"on_reservation":"end"`)
	ask(t, door, "PATCH", "/v1/definitions/r", `{"on_reservation":null}`).expect(200)
	if got := ask(t, door, "GET", "/v1/definitions/r", "").expect(200); strings.Contains(got.body, "on_reservation") {
		t.Error(got.body)
	}
}

// A page ends between two reservations whose names are as long as names can be.
func TestPagesOfReservationsWithLongNames(t *testing.T) {
	door := newDoor(t, Config{})
	resource := strings.Repeat("r", 1024)
	for i := range 3 {
		ask(t, door, "POST", "/v1/reservations", fmt.Sprintf(`{"id":"%s%d","resource":"%s","holder":"h","length":"1h","from":"%s"}`,
			strings.Repeat("i", 1000), i, resource, time.Now().Add(time.Duration(2*i+1)*time.Hour).Format(time.RFC3339))).expect(200)
	}
	seen := 0
	for after := ""; ; {
		page := read[v1.List[reservations.Reservation]](ask(t, door, "GET", "/v1/reservations?limit=1&after="+after, "").expect(200))
		seen += len(page.Items)
		if after = page.Next; after == "" {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d of 3 were listed", seen)
	}
}

func TestCalendarOfReservations(t *testing.T) {
	door := newDoor(t, Config{})
	from := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	ask(t, door, "POST", "/v1/reservations", `{"id":"demo","resource":"staging","holder":"ann, bob","length":"2h","reason":"demo; short","from":"`+
		from.Format(time.RFC3339)+`"}`).expect(200)
	got := ask(t, door, "GET", "/v1/calendar?prefix=stag", "").expect(200, "BEGIN:VEVENT\r\nUID:default/demo\r\n", `SUMMARY:staging: ann\, bob`,
		`DESCRIPTION:demo\; short\nState: planned\n`, "DTSTART:"+from.Format("20060102T150405Z")+"\r\n", "END:VCALENDAR\r\n")
	if got.header.Get("Content-Type") != "text/calendar; charset=utf-8" {
		t.Error(got.header)
	}
}
