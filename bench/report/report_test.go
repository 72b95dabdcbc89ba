package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var from = flag.String("from", "", "draw the plots of this result.json again, beside it")

// sample is a run with all that can be in one.
func sample() *Run {
	r := &Run{Machine: Machine{CPUs: 2, CPU: "<cpu>", SyncMillis: 0.19}, Rounds: 3, Seconds: 2,
		Servers: []Server{{Kind: "redis", Version: "7"}}, Missing: []string{"left out: consul is not installed"}}
	rate := &Table{Workload: "cycle-64", Title: "acquire & release", Nodes: 3, Columns: []Column{
		{Key: "rate", Title: "cycles/s"}, {Key: "p50", Title: "p50 ms", Digits: 2}}}
	for _, n := range []float64{4000, 4400, 4299} {
		rate.Row("leasehold", "package client").Add(Metrics{"rate": n, "p50": 7.123})
	}
	rate.Row("redis", "redsync").Add(Metrics{"rate": 17652})
	rate.Row("consul", "").Note = "it has nothing of the kind"
	growth := &Table{Workload: "growth", Title: "growth", Columns: []Column{{Key: "memory", Title: "MB", Lower: true}}}
	growth.Row("redis", "").Add(Metrics{"memory": 50, "cycles-1000": 9000, "cycles-10000": 8000, "memory-0": 3})
	growth.Row("leasehold", "").Add(Metrics{"memory": 100, "cycles-1000": 10000, "cycles-10000": 9000})
	r.Tables = []*Table{rate, growth, {Workload: "empty", Title: "empty", Columns: growth.Columns}}
	r.Finish(time.Now())
	return r
}

func TestTableShowsMediansSpreadAndRatios(t *testing.T) {
	var b strings.Builder
	if err := sample().Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"left out: consul is not installed\n",
		"Acquire & release; 3 nodes\n",
		"leasehold     4,299  4,000–4,400                  7.12\n",
		"redis        17,652                      0.24×       –\n",
		"  consul: it has nothing of the kind\n",
		"redis       50                     0.50×\n", // less is better
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not have %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "Empty") {
		t.Error("it shows a table without rows")
	}
}

func TestFilesAreWellFormed(t *testing.T) {
	files := sample().Files()
	if len(files) != 3 {
		t.Errorf("there are %d files", len(files))
	}
	for name, write := range files {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(name, err)
		}
		if name == "result.json" {
			var back Run
			if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.Tables[0].Rows[1].Median["rate"] != 17652 {
				t.Error(err, back.Tables)
			}
			continue
		}
		d := xml.NewDecoder(&b)
		for err := error(nil); !errors.Is(err, io.EOF); _, err = d.Token() {
			if err != nil {
				t.Fatal(name, err)
			}
		}
	}
	empty := &Run{}
	if len(empty.Files()) != 2 {
		t.Error("a run without growth has a plot of it")
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		value  float64
		digits int
		want   string
	}{{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1,000"}, {1234567.891, 1, "1,234,567.9"}, {-1500, 0, "-1,500"}} {
		if got := number(c.value, c.digits); got != c.want {
			t.Errorf("%v: %s, want %s", c.value, got, c.want)
		}
	}
	if m := Median([]float64{3, 1, 2, 10}); m != 2.5 {
		t.Error(m)
	}
}

// TestDraw draws the plots of a run again: go test ./bench/report -run Draw -from ../../bin/bench/result.json
func TestDraw(t *testing.T) {
	if *from == "" {
		t.Skip("it draws the plots of a run again, which -from names")
	}
	b, err := os.ReadFile(*from)
	if err != nil {
		t.Fatal(err)
	}
	var r Run
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	for name, write := range r.Files() {
		var b bytes.Buffer
		if err := errors.Join(write(&b), os.WriteFile(filepath.Join(filepath.Dir(*from), name), b.Bytes(), 0o666)); err != nil {
			t.Error(err)
		}
	}
}
