//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/bench/system"
	"github.com/leasehold/leasehold/bench/workload"
)

func main() {
	workload.HoldIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends it at once; the kernel ends the servers then.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	systems   []system.System // nil: what each workload names
	workloads []workload.Workload
	nodes     []int
	rounds    int
	size      workload.Size
	binary    string
	out       string // the directory of the files; empty: none
	quick     bool
}

// run measures and reports. It returns when nothing of it runs any more.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err == flag.ErrHelp {
		return nil
	}
	if err != nil {
		return err
	}
	b := &bench{options: o, progress: newProgress(progress)}
	result, err := b.run(ctx)
	if result == nil {
		return err
	}
	if writeErr := result.Text(out); err == nil {
		err = writeErr
	}
	if writeErr := b.write(result, out); err == nil {
		err = writeErr
	}
	if err == nil && result.Early {
		err = errEarly
	}
	return err
}

// errEarly is the error of a run that somebody ended, so that a script does not take it for whole.
var errEarly = errors.New("ended early")

// parse reads the flags, and refuses names that nobody has before anything is started.
func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	only := flags.String("only", "", "systems, separated by commas: "+strings.Join(system.Names(), ", "))
	loads := flags.String("workloads", "", "workloads, separated by commas; cycle means all cycle-…: "+
		strings.Join(workload.Names(), ", "))
	rounds := flags.Int("rounds", 3, "how often each is measured, in turns with the others")
	seconds := flags.Float64("seconds", 0, "how long each measurement lasts (default 1)")
	wire := flags.String("wire", "resp,http", "which wires of Leasehold: resp is what its client does by itself")
	nodes := flags.String("nodes", "1,3", "how many nodes the servers have")
	quick := flags.Bool("quick", false, "everything in small, to see whether it works")
	flags.StringVar(&o.binary, "binary", "", "the leasehold to measure; empty: built from this tree")
	flags.StringVar(&o.out, "out", filepath.Join("bin", "bench"),
		"directory for result.json and the plots; empty: none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag: see -help", flags.Arg(0))
	}
	if o.workloads, err = workload.Named(list(*loads, workload.Names()...)); err != nil {
		return o, err
	}
	if *only != "" {
		if o.systems, err = system.Named(list(*only)); err != nil {
			return o, err
		}
	}
	if o.nodes, err = numbers(*nodes); err != nil {
		return o, err
	}
	if o.workloads, err = onWires(o.workloads, *wire); err != nil {
		return o, err
	}
	o.rounds, o.quick, o.size = max(1, *rounds), *quick, workload.Full
	if *quick {
		o.rounds, o.size = 1, workload.Quick
	}
	if *seconds > 0 {
		o.size.Time = time.Duration(*seconds * float64(time.Second))
	}
	return o, nil
}

// list splits a flag.
func list(text string, otherwise ...string) (items []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	if len(items) == 0 {
		return otherwise
	}
	return items
}

func numbers(text string) (all []int, err error) {
	for _, item := range list(text) {
		n, err := strconv.Atoi(item)
		if err != nil || n != 1 && n != 3 {
			return nil, fmt.Errorf("-nodes is 1, 3 or 1,3, not %q", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// onWires leaves out the systems of wires that were not asked for.
func onWires(workloads []workload.Workload, wires string) ([]workload.Workload, error) {
	unwanted := map[string]string{"resp": "leasehold", "http": "leasehold-http"}
	for _, wire := range list(wires) {
		if unwanted[wire] == "" {
			return nil, fmt.Errorf("-wire is resp, http or resp,http, not %q", wires)
		}
		delete(unwanted, wire)
	}
	for i, w := range workloads {
		var kept []string
		for _, name := range w.Systems {
			if unwanted["resp"] != name && unwanted["http"] != name {
				kept = append(kept, name)
			}
		}
		workloads[i].Systems = kept
	}
	return workloads, nil
}
