package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/kinds"
	"github.com/leasehold/leasehold/internal/cli"
)

// The server learns how long commands take by the first words of them: see docs/alarms-and-advice.md.

// The labels that say of which kind a lease is.
const (
	kindLabel    = "kind"
	commandLabel = "command"
)

// An autoSpan is a flag that takes a duration, or auto.
type autoSpan struct {
	cli.Span
	auto bool
}

func (s *autoSpan) Type() string { return "duration|auto" }

func (s *autoSpan) String() string {
	if s.auto {
		return "auto"
	}
	return s.Span.String()
}

func (s *autoSpan) Set(text string) error {
	if s.auto = text == "auto"; s.auto {
		return nil
	}
	if s.Span.Set(text) != nil {
		return errors.New("write a duration such as 500ms, 30s, 5m, 2h or 1d, or auto")
	}
	return nil
}

// firstWords returns the program of a command line, and the word behind it, such as "python train.py". Others see them,
// so that what may be a secret or an address is left out, and so are options.
func firstWords(argv []string) string {
	text := filepath.Base(argv[0])
	if len(argv) > 1 && !strings.HasPrefix(argv[1], "-") && !strings.ContainsAny(argv[1], "=@:\n") && argv[1] != "" {
		text += " " + filepath.Base(argv[1])
	}
	if len(text) > maxWords || !utf8.ValidString(text) {
		return ""
	}
	return text
}

const maxWords = 64 // bytes, as kinds have

// labelKind lets the server know of which kind the command is, unless the person said so.
func (f *jobFlags) labelKind() {
	_, kind := f.labels[kindLabel]
	_, command := f.labels[commandLabel]
	if words := firstWords(f.argv); !kind && !command && words != "" {
		f.labels[commandLabel] = words
	}
}

// learnTTL fills in the TTL that suits the kind of the command. A server that knows no kinds leaves the default.
func (f *jobFlags) learnTTL(ctx context.Context, c *cli.Conn, holder string) error {
	if !f.ttl.auto {
		return nil
	}
	f.ttl.Value = leasehold.DefaultTTL
	if f.subject != "" {
		q := kinds.Query{Kind: f.labels[kindLabel], Command: f.labels[commandLabel], Holder: holder}
		known, err := kinds.Get(ctx, c.Caller, f.subject, q)
		if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
			return err
		}
		if len(known.Items) == 1 {
			f.ttl.Value = time.Duration(known.Items[0].TTL)
		}
	}
	if f.killAfter.Given {
		f.ttl.Value = max(f.ttl.Value, 2*f.killAfter.Value)
	} else {
		f.killAfter.Value = min(f.ttl.Value/3, 10*time.Second)
	}
	return nil
}
