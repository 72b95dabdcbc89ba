package journal

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// journalFlags are what audit and holds can be asked by.
type journalFlags struct {
	holder string
	actor  string
	verb   string
	since  string
	until  string
	limit  int
}

const journalLimit = 100

func (f *journalFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "", "from then on: how long ago (2h, 7d), or a time (2026-03-01, "+
		"2026-03-01T04:30:00Z)")
	flags.StringVar(&f.until, "until", "", "before then, written as with --since")
	flags.IntVar(&f.limit, "limit", journalLimit, "at most this many, the newest; 0 for all that are known, as with "+
		"-o ndjson")
}

// query returns the query that the flags describe. A name that ends with a slash is a prefix: no
// resource's name can end so.
func (f *journalFlags) query(a *cli.App, cmd *cobra.Command, args []string) (q v1.JournalQuery, err error) {
	if f.limit < 0 {
		return q, cli.Usage("--limit is %d: use 1 or more, or 0 for all", f.limit)
	}
	q = v1.JournalQuery{Holder: f.holder, Actor: f.actor, Verb: f.verb}
	if len(args) == 1 && strings.HasSuffix(args[0], "/") {
		q.Prefix = args[0]
	} else if len(args) == 1 {
		q.Resource = args[0]
	}
	if q.From, err = moment(a, "since", f.since); err != nil {
		return q, err
	}
	if q.Until, err = moment(a, "until", f.until); err != nil {
		return q, err
	}
	if a.Output == cli.FormatLines && !cmd.Flags().Changed("limit") {
		f.limit = 0
	}
	return q, nil
}

// moment reads a time as people write it: how long ago, a day, or exactly. A day is meant in the
// local time zone.
func moment(a *cli.App, flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if ago, err := v1.ParseDuration(s); err == nil && ago >= 0 {
		return a.Now().Add(-ago), nil
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	return time.Time{}, cli.Usage("--%s is %q: write how long ago, such as 90m or 7d, or a time such as 2026-03-01 or "+
		"2026-03-01T04:30:00Z", flag, s)
}

// newest collects up to limit items, or all, and puts the newest last, next to the prompt. The list
// is never nil, which JSON would show as null.
func newest[T any](limit int, page func(after string, limit int) (v1.List[T], error)) ([]T, error) {
	found, after := []T{}, ""
	for {
		size := v1.MaxLimit
		if limit > 0 {
			size = min(size, limit-len(found))
		}
		list, err := page(after, size)
		if err != nil {
			return nil, err
		}
		found = append(found, list.Items...)
		if after = list.Next; after == "" || limit > 0 && len(found) >= limit {
			slices.Reverse(found)
			return found, nil
		}
	}
}

// copyLines writes an export, oldest first, without holding it in memory: a journal can be larger
// than that. A limit counts from the newest, as everywhere, so those items have to be collected
// first.
func copyLines(ctx context.Context, a *cli.App, q v1.JournalQuery,
	export func(context.Context, v1.JournalQuery) (io.ReadCloser, error)) error {
	q.Oldest = true
	body, err := export(ctx, q)
	if err != nil {
		return err
	}
	defer body.Close()
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	buffer := make([]byte, 64<<10)
	for {
		n, err := body.Read(buffer)
		if _, bad := out.Write(buffer[:n]); bad != nil {
			return cli.Written(bad)
		}
		switch {
		case err == io.EOF:
			return cli.Written(out.Flush())
		case err != nil:
			_ = out.Flush() // what came is as good as it is
			return err
		}
	}
}

// printLines writes values one on each line.
func printLines[T any](a *cli.App, items []T) error {
	for _, item := range items {
		if err := a.PrintCompact(item); err != nil {
			return err
		}
	}
	return nil
}
