package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// Log formats.
const (
	Text = "text"
	JSON = "json"
)

// NewLog returns a log that is written to w in a format.
func NewLog(w io.Writer, format string, level slog.Leveler) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch format {
	case Text:
		return slog.New(slog.NewTextHandler(w, options)), nil
	case JSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("log format %q is unknown: %s and %s are there", format, Text, JSON)
}
