package record

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
)

// A condition is what a write asked to be true of a record.
type condition struct {
	path     string
	absent   bool
	revision uint64
}

// explain gives a refusal an exit code of its own if the condition is not met. The server also refuses
// a token that was never granted, so the record is read again: a script that lost a race must
// not be confused with one that is wrong.
func (w condition) explain(ctx context.Context, c *cli.Conn, err error) error {
	if !errors.Is(err, leasehold.ErrRefused) || !w.absent && w.revision == 0 {
		return ExplainRecord(c, err)
	}
	now, lookup := c.Record(ctx, w.path, 0)
	gone := errors.Is(lookup, leasehold.ErrNotFound)
	if lookup != nil && !gone {
		return ExplainRecord(c, err)
	}
	read := c.Again("get", w.path, "-o", "json")
	switch {
	case w.absent && !gone:
		return conflict(read, "%s already exists, at revision %d; nothing was changed", w.path, now.Mod)
	case w.revision != 0 && gone:
		return conflict(c.Again("versions", w.path),
			"%s does not exist; revision %d was expected, and nothing was changed", w.path, w.revision)
	case w.revision != 0 && now.Mod != w.revision:
		return conflict(read, "%s is at revision %d, not %d; nothing was changed", w.path, now.Mod, w.revision)
	}
	return ExplainRecord(c, err)
}

func conflict(next, format string, args ...any) error {
	failure := cli.Failure(leasehold.Refused, format, args...)
	return cli.Hint(&cli.CodedError{Code: cli.ExitConflict, Err: failure}, "look again: %s", next)
}
