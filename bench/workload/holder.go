//go:build linux

package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/leasehold/leasehold/bench/system"
	"github.com/leasehold/leasehold/test/process"
)

// orders is the variable that turns this program into a holder.
const orders = "LEASEHOLD_BENCH_HOLD"

// An order says what a holder holds.
type order struct {
	System    string
	Addresses []string
	Names     []string
	TTL       time.Duration
	Every     time.Duration // between two of them
}

// HoldIfAsked turns this process into a holder of leases that is going to be killed. A process of its
// own is needed for that, and the benchmark's own program is at hand.
func HoldIfAsked() {
	text := os.Getenv(orders)
	if text == "" {
		return
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.hold(context.Background(), os.Stdout)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// hold acquires the leases, and says when it asked for each. It does not return then.
func (o order) hold(ctx context.Context, out io.Writer) error {
	found, err := system.Named([]string{o.System})
	if err != nil {
		return err
	}
	server := &system.Server{Addresses: o.Addresses}
	c, err := found[0].Dial(ctx, server, system.Dialing{Users: len(o.Names), TTL: o.TTL})
	if err != nil {
		return err
	}
	// Ours are in a session each, so that they do not all end at the same moment.
	byHand := strings.HasPrefix(o.System, "leasehold")
	for _, name := range o.Names {
		asked := time.Now()
		if _, err := c.Acquire(ctx, system.Request{Name: name, TTL: o.TTL, ByHand: byHand}); err != nil {
			return err
		}
		fmt.Fprintln(out, asked.UnixNano())
		time.Sleep(o.Every)
	}
	select {}
}

// startHolder starts a process that holds leases. It returns when each of them was asked for.
func (t *Trial) startHolder(o order, granted func(i int)) (_ *process.Process, asked []time.Time, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), orders+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	p, err := process.StartCommand(cmd)
	if err != nil {
		return nil, nil, err
	}
	lines := bufio.NewScanner(out)
	for i := range o.Names {
		var at int64
		if !lines.Scan() {
			return p, nil, fmt.Errorf("the holder acquired %d of %d leases", i, len(o.Names))
		}
		if _, err := fmt.Sscan(lines.Text(), &at); err != nil {
			return p, nil, err
		}
		asked = append(asked, time.Unix(0, at))
		granted(i)
	}
	return p, asked, nil
}
