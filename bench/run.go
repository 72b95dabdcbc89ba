//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/bench/system"
	"github.com/leasehold/leasehold/bench/workload"
	"github.com/leasehold/leasehold/test/process"
)

// A bench is one run of the benchmark.
type bench struct {
	options
	progress *progress
	stage    *stage.Stage
	result   *report.Run
	running  map[string]*system.Server // by kind, of those that are started for all rounds
	missing  map[string]bool           // what was said to be missing
}

// run measures everything. What it has when somebody ends it is the result.
func (b *bench) run(ctx context.Context) (_ *report.Run, err error) {
	if b.stage, err = stage.New(); err != nil {
		return nil, err
	}
	defer func() {
		b.progress.end()
		err = errors.Join(err, b.stage.Close())
	}()
	began := time.Now()
	b.missing = map[string]bool{}
	b.result = &report.Run{Rounds: b.rounds, Seconds: b.size.Time.Seconds(), Machine: machine()}
	if b.result.Machine.SyncMillis, err = b.syncTime(); err != nil {
		return nil, err
	}
	if b.binary == "" {
		b.progress.say("building leasehold")
		if err := b.stage.Try(func() { b.binary = process.BuildTree(b.stage, b.stage.TempDir()) }); err != nil {
			return nil, err
		}
	} else if b.binary, err = filepath.Abs(b.binary); err != nil {
		return nil, err
	}
	for _, w := range b.workloads {
		b.progress.expect(b.steps(w))
	}
	for _, nodes := range b.nodes {
		b.inRounds(ctx, nodes)
		b.oneByOne(ctx, nodes)
	}
	if b.result.Machine.SyncAfter, err = b.syncTime(); err != nil {
		return nil, err
	}
	b.result.Early = ctx.Err() != nil
	b.result.Finish(began)
	return b.result, nil
}

// syncTime measures the disk on which the servers keep their data, in ms.
func (b *bench) syncTime() (float64, error) {
	took, err := stage.SyncTime(b.stage.TempDir(), 200)
	return float64(took.Microseconds()) / 1000, err
}

// steps returns how many measurements a workload has.
func (b *bench) steps(w workload.Workload) (n int) {
	for _, nodes := range b.nodes {
		if slices.Contains(w.Nodes, nodes) {
			n += len(b.systemsOf(w)) * b.roundsOf(w)
		}
	}
	return n
}

func (b *bench) roundsOf(w workload.Workload) int {
	if w.Fresh {
		return 1
	}
	return b.rounds
}

// systemsOf returns the systems that are measured in a workload, in the order of all.
func (b *bench) systemsOf(w workload.Workload) (chosen []system.System) {
	if b.systems != nil {
		return b.systems
	}
	for _, s := range system.All {
		if slices.Contains(w.Systems, s.Name) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// inRounds runs the workloads that share servers: each system in turn, several times, so that whatever
// else the machine does slows all of them.
func (b *bench) inRounds(ctx context.Context, nodes int) {
	on := b.stage.Sub()
	b.running = map[string]*system.Server{}
	tables := map[string]*report.Table{}
	for round := range b.rounds {
		for _, w := range b.workloads {
			if w.Fresh || !slices.Contains(w.Nodes, nodes) {
				continue
			}
			if round == 0 {
				tables[w.Name] = b.table(w, nodes)
			}
			for _, s := range b.systemsOf(w) {
				if ctx.Err() != nil {
					break
				}
				b.progress.step("%s, %s, round %d", tables[w.Name].Heading(), s.Name, round+1)
				if server := b.server(ctx, on, s.Kind, nodes); server != nil {
					b.measure(ctx, w, tables[w.Name], s, server)
				}
			}
		}
	}
	b.close(on)
}

// oneByOne runs the workloads that need a server of their own.
func (b *bench) oneByOne(ctx context.Context, nodes int) {
	for _, w := range b.workloads {
		if !w.Fresh || !slices.Contains(w.Nodes, nodes) {
			continue
		}
		table := b.table(w, nodes)
		for _, s := range b.systemsOf(w) {
			if ctx.Err() != nil {
				return
			}
			b.progress.step("%s, %s", table.Heading(), s.Name)
			on := b.stage.Sub()
			b.running = map[string]*system.Server{}
			if server := b.server(ctx, on, s.Kind, nodes); server != nil {
				b.measure(ctx, w, table, s, server)
			}
			b.close(on)
		}
	}
}

// close ends servers. What they leave behind, or could not end, is said.
func (b *bench) close(on *stage.Stage) {
	if err := on.Close(); err != nil {
		b.miss(fmt.Sprintf("a server did not end well: %v", err))
	}
}

func (b *bench) table(w workload.Workload, nodes int) *report.Table {
	t := &report.Table{Workload: w.Name, Title: w.Title(b.size), Nodes: nodes, Columns: w.Figures(b.size)}
	b.result.Tables = append(b.result.Tables, t)
	return t
}

// server returns the server of a kind, and starts it if it is the first time. It returns nil if it
// cannot be started, which is said once.
func (b *bench) server(ctx context.Context, on *stage.Stage, kind string, nodes int) *system.Server {
	s, tried := b.running[kind]
	if tried || ctx.Err() != nil {
		return s
	}
	own := on.Sub() // what one says is not mixed with the others'
	s, err := system.Start(own, kind, system.Config{Nodes: nodes, Binary: b.binary})
	b.running[kind] = s
	switch {
	case err == nil:
		b.describe(s)
		return s
	case ctx.Err() != nil:
	case errors.Is(err, stage.ErrMissing):
		b.miss(err.Error())
	default:
		err = errors.Join(err, own.Close())
		b.miss(fmt.Sprintf("left out: %s cannot be started: %v: %s", kind, err, own.Said()))
	}
	return nil
}

// miss says what is missing, once.
func (b *bench) miss(text string) {
	if !b.missing[text] {
		b.missing[text] = true
		b.result.Missing = append(b.result.Missing, text)
	}
}

// describe adds a server to the result, once for each kind.
func (b *bench) describe(s *system.Server) {
	if slices.ContainsFunc(b.result.Servers, func(other report.Server) bool { return other.Kind == s.Kind }) {
		return
	}
	described := report.Server{Kind: s.Kind, Version: s.Version, Setup: s.Setup}
	if s.Speaks != nil {
		described.Wires = s.Speaks()
	}
	b.result.Servers = append(b.result.Servers, described)
}

// measure does one measurement. One that fails is a note in its table: the others go on.
func (b *bench) measure(
	ctx context.Context, w workload.Workload, table *report.Table, s system.System, server *system.Server,
) {
	limit, cancel := context.WithTimeout(ctx, 6*time.Minute) // a storm takes etcd four, and nothing takes longer
	defer cancel()
	trial := &workload.Trial{System: s, Server: server, Size: b.size, Say: func(format string, args ...any) {
		b.progress.say("%s, %s: %s", table.Heading(), s.Name, fmt.Sprintf(format, args...))
	}}
	m, note, err := w.Run(limit, trial)
	if ctx.Err() != nil {
		return // it was ended in the middle
	}
	row := table.Row(s.Name, s.Via)
	switch {
	case err != nil:
		row.Note = err.Error()
	case note != "":
		row.Note = note
	}
	if m != nil {
		row.Add(m)
		first := table.Columns[0]
		b.progress.say("%s, %s: %.*f %s", table.Heading(), s.Name, first.Digits, m[first.Key], first.Title)
	} else {
		b.progress.say("%s, %s: %s", table.Heading(), s.Name, row.Note)
	}
}

// write writes the files.
func (b *bench) write(r *report.Run, out io.Writer) error {
	if b.out == "" {
		return nil
	}
	if err := os.MkdirAll(b.out, 0o777); err != nil {
		return err
	}
	files := r.Files()
	for name, write := range files {
		if err := writeFile(filepath.Join(b.out, name), write); err != nil {
			return err
		}
	}
	names := strings.Join(slices.Sorted(maps.Keys(files)), ", ")
	_, err := fmt.Fprintf(out, "\nwritten to %s: %s\n", b.out, names)
	return err
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
