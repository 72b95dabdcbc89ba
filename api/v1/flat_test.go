package v1

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/flatjson"
)

// Every request is written as encoding/json writes it, whichever of its fields are set.
func TestFlatBodies(t *testing.T) {
	fast := 0
	check := func(body any) {
		t.Helper()
		got, ok := flatBody(body)
		if want, err := json.Marshal(body); ok && (err != nil || string(got) != string(want)) {
			t.Errorf("%+v is written as %s, want %s", body, got, want)
		}
		if ok {
			fast++
		}
	}
	for _, body := range []any{AcquireRequest{}, ReleaseRequest{}, RenewRequest{}, ChangeRequest{}} {
		check(body)
		for i := range reflect.TypeOf(body).NumField() {
			one := reflect.New(reflect.TypeOf(body)).Elem()
			fill(one.Field(i), 1)
			check(one.Interface())
			if one.FieldByName("ID").IsZero() {
				one.FieldByName("ID").SetString("2m4k")
				check(one.Interface())
			}
		}
	}
	check(AcquireRequest{Resource: "a/b", Holder: "h", ID: "1", Session: "s"})
	check(ReleaseRequest{ID: "1", Session: "s"})
	check(RenewRequest{ID: "a\"b"})
	check(RenewRequest{ID: "\xff"})
	check(AcquireRequest{Resource: "é"})
	if fast < 8 {
		t.Errorf("only %d were written fast", fast)
	}
}

// Every answer is read as encoding/json reads it.
func TestFlatAnswers(t *testing.T) {
	left, count, ttl := int64(30000), uint64(3), Duration(30*time.Second)
	now := Time{time.Date(2026, 3, 1, 4, 30, 0, 123e6, time.UTC)}
	usual := Lease{Namespace: "default", Resource: "a", ID: "1", Holder: "h", Token: 7, Floor: 7, State: "leased", TTL: &ttl,
		Expires: &now, RemainingMS: &left, Acquired: &now, Session: "s", Revision: 9, Interventions: &count}
	full := Lease{}
	fill(reflect.ValueOf(&full).Elem(), 1)
	for i, answer := range []any{
		&usual, &Lease{}, &full, &Session{ID: "s", TTL: ttl, Interventions: &count}, &Session{}, &Nothing{}, &Resource{},
	} {
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		o := &flatjson.Object{}
		o.Text.Write(text)
		got := reflect.New(reflect.TypeOf(answer).Elem()).Interface()
		ok := readFlat(o, got)
		if wants := i == 0 || i == 3; ok != wants && wants {
			t.Errorf("%s is not read fast", text)
		}
		if !ok {
			continue
		}
		want := reflect.New(reflect.TypeOf(answer).Elem()).Interface()
		if err := json.Unmarshal(text, want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, want %+v, %v", text, got, want, err)
		}
	}
}
