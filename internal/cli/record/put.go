package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Put returns the command put.
func Put(a *cli.App) *cobra.Command {
	var request v1.PutRequest
	keep := ""
	cmd := &cobra.Command{
		Use:   "put PATH [VALUE|-|@FILE]",
		Short: "Make a record, or change its value",
		Long: `Put writes a value under a path: the word after the path, what a file holds (@FILE),
or what comes from standard input (- or nothing). A value has up to 256 MiB of any bytes.

With --keep the record keeps that many former versions from now on: see them
with ` + "`leasehold versions`" + `, and go back with ` + "`leasehold rollback`" + `. Without it, it keeps as
many as before; a new record keeps none, and --keep none lets them all go.

With --create there must be none yet; with --if-revision that revision must have
changed it last. Otherwise nothing is written, and the command ends with code 65.

With --lease the write happens only while that lease is alive, judged by the server
in the same moment; --token must then be its token. With --token alone the record
judges: it turns away a token smaller than one it was written under before. A late
holder gets code 76, and nothing is written.`,
		Example: `  leasehold put config/limits max=10 --create
  leasehold put state/nightly @state.json --keep 20 \
      --lease "$id" --token "$token"
  date | leasehold put workers/7/seen --session "$session"`,
		Args:              cli.Takes(1, 2),
		ValidArgsFunction: completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if request.IfAbsent && request.IfRevision != 0 {
			return cli.SeeHelp(cmd, cli.Usage("--create and --if-revision cannot both hold: give one"))
		}
		source := "-"
		if len(args) == 2 {
			source = args[1]
		} else if a.Terminal(a.Stdin) {
			return cli.SeeHelp(cmd,
				cli.Usage("put needs a value: give it after the path, or send it to standard input"))
		}
		done, err := readValue(a, source, &request)
		if err != nil {
			return err
		}
		defer done()
		request.Path = args[0]
		if request.Keep, err = toKeep(keep); err != nil {
			return err
		}
		record, err := c.PutRecord(ctx, request)
		if err != nil {
			return condition{args[0], request.IfAbsent, request.IfRevision}.explain(ctx, c, err)
		}
		return printPut(a, record)
	})
	flags := cmd.Flags()
	flags.Uint64Var(&request.IfRevision, "if-revision", 0, "only if this revision changed it last")
	flags.BoolVar(&request.IfAbsent, "create", false, "only if there is none")
	flags.StringVar(&request.Session, "session", "", "the record ends with this session")
	flags.StringVar(&keep, "keep", "", "how many former versions it keeps, or none (default: as before)")
	fenceFlags(cmd, &request.Fence)
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func fenceFlags(cmd *cobra.Command, fence *v1.Fence) {
	cmd.Flags().StringVar(&fence.Lease, "lease", "", "only while the lease of this id is alive")
	cmd.Flags().Uint64Var(&fence.Token, "token", 0, "the token of that lease; alone, the record judges it")
}

// toKeep parses how many former versions a record should keep.
func toKeep(s string) (int, error) {
	switch s {
	case "":
		return 0, nil
	case "none":
		return leasehold.KeepNone, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > leasehold.MaxKeep {
		return 0, cli.Usage("--keep is %s: use 1 to %d, or none", cli.Quote(s), leasehold.MaxKeep)
	}
	return n, nil
}

// readValue reads a short value, and prepares a long one to be sent while it is read, so that it is
// never whole in memory. Call done after the request.
func readValue(a *cli.App, source string, into *v1.PutRequest) (done func(), err error) {
	in, done := a.Stdin, func() {}
	if name, isFile := strings.CutPrefix(source, "@"); isFile {
		file, err := os.Open(name)
		if err != nil {
			return nil, cli.Usage("the value cannot be read: %v", err)
		}
		in, done = file, func() { file.Close() }
	} else if source != "-" {
		into.Value = []byte(source)
		return done, nil
	}
	first, err := io.ReadAll(io.LimitReader(in, leasehold.MaxValue+1))
	if err != nil {
		done()
		return nil, cli.Usage("the value cannot be read: %v", err)
	}
	if into.Value = first; len(first) > leasehold.MaxValue {
		into.Value, into.Body = nil, io.MultiReader(bytes.NewReader(first), in)
	}
	return done, nil
}

func printPut(a *cli.App, r v1.Record) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(r)
	case cli.FormatName:
		return a.PrintLine(fmt.Sprint(r.Mod))
	}
	a.Say("put %s, version %d, revision %d", r.Path, r.Version, r.Mod)
	return nil
}

// ExplainRecord adds what to try next about a record.
func ExplainRecord(c *cli.Conn, err error) error {
	var failure *leasehold.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Code {
	case leasehold.NotFound, leasehold.Undecided:
		return cli.Hint(err, "see what there is: %s", c.Again("records"))
	}
	return err
}
