package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) putCommand() *cobra.Command {
	var request v1.PutRequest
	cmd := &cobra.Command{
		Use:   "put PATH [VALUE|-|@FILE]",
		Short: "Make a record, or change its value",
		Long: `Put writes a value under a path: the word after the path, what a file holds (@FILE),
or what comes from standard input (- or nothing). A value has up to 64 KiB of any bytes.

With --create there must be none yet; with --if-revision that revision must have
changed it last. Both end with code 64 if something else is there.

With --lease the write happens only while that lease is alive, judged by the server
in the same moment; --token must then be its token. With --token alone the record
judges: it turns away a token smaller than one it was written under before. Who is
late gets code 76, and nothing is written.`,
		Example: `  leasehold put config/limits max=10 --create
  leasehold put state/nightly @state.json --lease "$id" --token "$token"
  date | leasehold put workers/7/seen --session "$session"`,
		Args:              takes(1, 2),
		ValidArgsFunction: a.completesRecords,
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if request.IfAbsent && request.IfRevision != 0 {
			return seeHelp(cmd, usage("--create and --if-revision can not both hold: give one"))
		}
		source := "-"
		if len(args) == 2 {
			source = args[1]
		} else if a.terminal(a.stdin) {
			return seeHelp(cmd, usage("put needs a value: give it after the path, or send it to standard input"))
		}
		value, err := a.readValue(source)
		if err != nil {
			return err
		}
		request.Path, request.Value = args[0], value
		record, err := c.PutRecord(ctx, request)
		if err != nil {
			return c.explainRecord(err)
		}
		return a.printPut(record)
	})
	flags := cmd.Flags()
	flags.Uint64Var(&request.IfRevision, "if-revision", 0, "only if this revision changed it last")
	flags.BoolVar(&request.IfAbsent, "create", false, "only if there is none")
	flags.StringVar(&request.Session, "session", "", "the record ends with this session")
	fenceFlags(cmd, &request.Fence)
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}

func fenceFlags(cmd *cobra.Command, fence *v1.Fence) {
	cmd.Flags().StringVar(&fence.Lease, "lease", "", "only while the lease of this id is alive")
	cmd.Flags().Uint64Var(&fence.Token, "token", 0, "the token of that lease; alone, the record judges it")
}

// readValue reads up to as many bytes as a value can have, and one more for the
// server to refuse.
func (a *app) readValue(source string) ([]byte, error) {
	in := a.stdin
	if name, isFile := strings.CutPrefix(source, "@"); isFile {
		file, err := os.Open(name)
		if err != nil {
			return nil, usage("the value can not be read: %v", err)
		}
		defer file.Close()
		in = file
	} else if source != "-" {
		return []byte(source), nil
	}
	value, err := io.ReadAll(io.LimitReader(in, leasehold.MaxValue+1))
	switch {
	case err != nil:
		return nil, usage("the value can not be read: %v", err)
	case len(value) > leasehold.MaxValue:
		return nil, usage("the value has more than %d bytes, which is the most there can be", leasehold.MaxValue)
	}
	return value, nil
}

func (a *app) printPut(r v1.Record) error {
	switch a.output {
	case formatJSON:
		return a.printJSON(r)
	case formatName:
		return a.printLine(fmt.Sprint(r.Mod))
	}
	a.say("put %s, version %d, revision %d", r.Path, r.Version, r.Mod)
	return nil
}

// explainRecord adds what to try next about a record.
func (c *conn) explainRecord(err error) error {
	var failure *leasehold.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Code {
	case leasehold.NotFound, leasehold.Undecided:
		return hint(err, "see what there is: %s", c.again("records"))
	}
	return err
}
