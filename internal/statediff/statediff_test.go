package statediff

import (
	"fmt"
	"testing"
)

func TestCompare(t *testing.T) {
	from := read(t, `{"version":4,"outputs":{"ip":{"value":"a"}},"resources":[
		{"mode":"managed","type":"disk","name":"a","instances":[{"attributes":{"size":1,"id":"x"}}]},
		{"mode":"managed","type":"disk","name":"gone","instances":[{"attributes":{}}]}]}`)
	to := read(t, `{"version":4,"outputs":{"ip":{"value":"b"}},"resources":[
		{"mode":"managed","type":"disk","name":"a","instances":[{"attributes":{ "size" : 2,"id":"x"}}]},
		{"module":"module.m","mode":"data","type":"zone","name":"z","instances":[{"index_key":"k","attributes":{}}]}]}`)
	want := "[{changed disk.a [size]} {removed disk.gone []} {added module.m.data.zone.z[\"k\"] []} {changed output.ip []}]"
	if got := fmt.Sprint(Compare(from, to)); got != want {
		t.Errorf("the differences are\n%s\nwant\n%s", got, want)
	}
	if got := Compare(from, from); len(got) != 0 {
		t.Errorf("a state differs from itself: %v", got)
	}
	if got := fmt.Sprint(from.Kinds()); got != "[2 disk]" {
		t.Errorf("the kinds are %s", got)
	}
}

// What cannot be compared is refused, and not taken for an empty state.
func TestReadRefuses(t *testing.T) {
	for _, body := range []string{`{"encrypted_data":"AAAA"}`, `{"version":3}`, `[]`, ``} {
		if _, err := Read([]byte(body)); err == nil {
			t.Errorf("%s is read", body)
		}
	}
}

func read(t *testing.T, body string) Contents {
	t.Helper()
	c, err := Read([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
