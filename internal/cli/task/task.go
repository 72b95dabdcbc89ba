// Package task has the commands for tasks: work put into a folder, where the next free worker claims it.
//
// They add and show tasks. Workers take them with leasehold claim, which is run for the next task, or by the
// API and its clients. What is to be done is a record: leasehold get prints it, and leasehold delete removes the task.
package task

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/tasks"
	"github.com/leasehold/leasehold/internal/cli"
)

// Command returns the command task.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Put work into a folder for workers to claim",
		Long: `Task is about work for several workers. A task is a record in a folder, with a state: todo,
doing, done or failed. Workers take the next one with leasehold claim, and nobody else gets
it; if a worker is lost, its task is offered to others again.`,
		Example: `  leasehold task add jobs/resize-42 42.png
  leasehold claim jobs/ -- ./resize.sh
  leasehold task list jobs/`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(add(a), list(a))
	return cmd
}

// add returns the command task add.
func add(a *cli.App) *cobra.Command {
	var r tasks.PutRequest
	cmd := &cobra.Command{
		Use:   "add FOLDER/NAME [VALUE|-|@FILE]",
		Short: "Add a task",
		Long: `Add puts a task into a folder. The value, up to 64 KiB of any bytes, says what is to be done:
the word after the path, what a file holds (@FILE), or what comes from standard input (-).

The same task once more changes nothing. One that nobody does yet is changed, and keeps its
place; one that is done or has failed begins again; one that somebody does is refused.`,
		Example: `  leasehold task add jobs/resize-42 42.png
  leasehold task add jobs/nightly @job.json --priority 5
  leasehold task add jobs/once -o json --attempts 1`,
		Args: cli.Takes(1, 2),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) (err error) {
		if leasehold.TaskFolder(args[0]) == "" {
			return cli.SeeHelp(cmd, cli.Usage("%q is no name of a task: it is a folder, a slash and a name, such as "+
				"jobs/resize-42", args[0]))
		}
		if r.Value = nil; len(args) == 2 {
			if r.Value, err = readValue(a, args[1]); err != nil {
				return err
			}
		}
		r.By = c.Operator()
		if err := tasks.Put(ctx, c.Caller, args[0], r); err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			task, err := tasks.Get(ctx, c.Caller, args[0])
			if err != nil {
				return err
			}
			return a.PrintJSON(task)
		}
		a.Say("added %s", args[0])
		return nil
	})
	cmd.Flags().IntVar(&r.Priority, "priority", 0, "larger ones are claimed first, from -1000 to 1000")
	cmd.Flags().IntVar(&r.Attempts, "attempts", 0, "how often it may be tried (default 3)")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// readValue reads a value as leasehold put does, but whole: a task has a short one.
func readValue(a *cli.App, source string) ([]byte, error) {
	var in io.Reader = strings.NewReader(source)
	if name, isFile := strings.CutPrefix(source, "@"); isFile {
		file, err := os.Open(name)
		if err != nil {
			return nil, cli.Usage("the value cannot be read: %v", err)
		}
		defer file.Close()
		in = file
	} else if source == "-" {
		in = a.Stdin
	}
	value, err := io.ReadAll(io.LimitReader(in, leasehold.MaxValue+1))
	switch {
	case err != nil:
		return nil, cli.Usage("the value cannot be read: %v", err)
	case len(value) > leasehold.MaxValue:
		return nil, cli.Usage("the value of a task has at most %d bytes: put more into a record, and name that",
			leasehold.MaxValue)
	}
	return value, nil
}

// list returns the command task list.
func list(a *cli.App) *cobra.Command {
	q := tasks.Query{Limit: 1000}
	cmd := &cobra.Command{
		Use:   "list [FOLDER/]",
		Short: "List tasks",
		Long: `List shows the tasks whose path begins with FOLDER/, or all of them: the state, how often each
was tried and how often it may be, who does it or did it last, since when, and what came of it.`,
		Example: `  leasehold task list jobs/
  leasehold task list jobs/ --state failed
  leasehold task list -o json | jq -r '.[] | select(.state == "doing").holder'`,
		Args: cli.Takes(0, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if len(args) == 1 {
			q.Prefix = args[0]
		}
		found := []tasks.Task{}
		for task, err := range tasks.All(ctx, c.Caller, q) {
			if err != nil {
				return err
			}
			found = append(found, task)
		}
		return show(a, found)
	})
	cmd.Flags().StringVar(&q.State, "state", "", "only those in this state: todo, doing, done or failed")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func show(a *cli.App, found []tasks.Task) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(found)
	case a.Output != cli.FormatName && len(found) == 0:
		a.Say("there are no such tasks")
		return nil
	}
	var rows [][]string
	for _, t := range found {
		if a.Output == cli.FormatName {
			if err := a.PrintLine(t.Path); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{t.Path, t.State, strconv.Itoa(t.Priority),
			fmt.Sprintf("%d/%d", t.Attempts, t.MaxAttempts), t.Holder,
			cli.Short(a.Now().Sub(t.Changed.Time).Round(time.Second)), t.Result})
	}
	if a.Output == cli.FormatName {
		return nil
	}
	return a.PrintTable([]cli.Column{{Name: "PATH"}, {Name: "STATE"}, {Name: "PRIORITY"}, {Name: "TRIED"},
		{Name: "HOLDER"}, {Name: "SINCE"}, {Name: "RESULT", Flexible: true}}, rows)
}
