package run

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
)

// AwaitName is the argument with which this program waits for the end of processes that are not its children.
const AwaitName = "__await"

// Adopt returns the command pool adopt: a run whose command does nothing but wait for a process that was there before.
func Adopt(a *cli.App) *cobra.Command {
	f := runFlags{jobFlags: jobFlags{labels: cli.Labels{}, pool: true}}
	pid := 0
	cmd := &cobra.Command{
		Use:   "adopt POOL --unit UNIT [--pid PID]",
		Short: "Lease a unit on which your process runs already",
		Long: `Adopt takes a lease on a unit that is taken without one, for the processes on it: those of
--pid and its children, or without it all of yours. It goes on for as long as one of them
runs, and the lease ends with them. If the lease is lost, the processes stay: nobody is
killed.

Which processes are on a unit is reported by leasehold pool agent. If there are others, the
unit is not yours to adopt.`,
		Example: `  leasehold pool adopt gpu --unit GPU-5f1c
  leasehold pool adopt gpu --unit GPU-5f1c --pid 4711
  leasehold pool adopt gpu --unit GPU-5f1c --pid 4711 --reason "sweep 3"`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if len(f.unit) != 1 {
			return cli.SeeHelp(cmd, cli.Usage("say which unit with --unit, once"))
		}
		pids, err := toAdopt(ctx, c, args[0], f.unit[0], pid)
		if err != nil {
			return err
		}
		program, err := exec.LookPath(os.Args[0])
		if err != nil {
			return fmt.Errorf("this program does not find itself: %w", err)
		}
		f.names, f.argv, f.adopts = args, append([]string{program, AwaitName}, pids...), strings.Join(pids, ",")
		f.labels[leasehold.LabelPID] = f.adopts
		f.wanted.Slots = cli.Slots{N: 1, Given: true}
		if err := f.check(cmd); err != nil {
			return err
		}
		return runJob(ctx, a, c, f)
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&f.unit, "unit", nil, "the unit")
	flags.IntVar(&pid, "pid", 0, "the process, with its children (default: all of yours on the unit)")
	flags.VarP(&f.wait, "wait", "w", "how long to wait in the queue at most (default: as long as it takes)")
	f.heldCode = cli.ExitHeld
	f.jobFlags.add(a, cmd)
	a.ClientFlags(cmd)
	return cmd
}

// toAdopt returns the processes on a unit that are to be adopted, by their numbers. It refuses if others are on it: the
// server would, too, but here their names are known. A process that has ended since the last report is passed over.
func toAdopt(ctx context.Context, c *cli.Conn, path, unit string, pid int) (pids []string, err error) {
	if pid > 0 && !alive(pid) {
		return nil, cli.Usage("there is no process %d", pid)
	}
	query := pools.Query{Limit: leasehold.MaxPoolUnits, Queue: 1}
	status, err := pools.Get(ctx, c.Caller, path, query)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(status.Units, func(u pools.Unit) bool { return u.Name == unit })
	if at < 0 {
		return nil, cli.Failure(leasehold.NotFound, "%s has no unit %q", path, unit)
	}
	if pid > 0 {
		pids = append(pids, strconv.Itoa(pid))
	}
	if use := status.Units[at].Use; use != nil {
		for _, p := range use.Strangers {
			mine := pid == 0 && owns(p.PID) || pid > 0 && descends(p.PID, pid)
			if !mine && alive(p.PID) {
				return nil, cli.Failure(leasehold.Refused, "process %d of %s (%s) is on %s, too, and is not yours to "+
					"adopt", p.PID, p.User, p.Name, unit)
			}
			if text := strconv.Itoa(p.PID); !slices.Contains(pids, text) {
				pids = append(pids, text)
			}
		}
	}
	if len(pids) == 0 {
		return nil, cli.Usage("no process of yours is known on %s: name it with --pid", unit)
	}
	return pids, nil
}

// started returns when a process began, as the kernel counts; empty if there is none. A number is used again one day,
// and then with another beginning.
func started(pid int) string { return statField(pid, 19) }

// alive reports whether there is such a process. One that has ended and that its parent did not notice is none.
func alive(pid int) bool { return started(pid) != "" }

// owns reports whether a process is run by the same user as this one.
func owns(pid int) bool {
	info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil && ownedBy(info) == os.Getuid()
}

// descends reports whether a process is another, or was started below it.
func descends(pid, from int) bool {
	for range 64 {
		if pid == from {
			return true
		}
		parent, err := strconv.Atoi(statField(pid, 1))
		if err != nil || parent <= 1 {
			return false
		}
		pid = parent
	}
	return false
}

// statField returns a field of what the kernel says of a process, counted from its state on: the name before that is
// in parentheses, and may have some.
func statField(pid, n int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	stat := string(text)
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= n || fields[0] == "Z" {
		return ""
	}
	return fields[n]
}

// Await waits until none of some processes is left. There is no event for the end of a process that is nobody's child
// here, so they are looked at now and then.
func Await(pids []string) int {
	left := map[int]string{}
	for _, text := range pids {
		if pid, err := strconv.Atoi(text); err == nil && alive(pid) {
			left[pid] = started(pid)
		}
	}
	for len(left) > 0 {
		time.Sleep(time.Second / 2)
		for pid, began := range left {
			if started(pid) != began {
				delete(left, pid)
			}
		}
	}
	return 0
}

// adoptEnv says in the environment of the awaiting command what was adopted: the agent of the host reads it there.
func (f *jobFlags) adoptEnv(env []string) []string {
	if f.adopts == "" {
		return env
	}
	return append(env, config.EnvAdopts+"="+f.adopts)
}
