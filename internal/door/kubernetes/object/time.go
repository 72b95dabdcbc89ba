package object

import "time"

// A Time has whole seconds. The zero Time is none.
type Time struct{ time.Time }

// A MicroTime has microseconds. The zero MicroTime is none.
type MicroTime struct{ time.Time }

const microFormat = "2006-01-02T15:04:05.000000Z07:00"

// NewTime returns a moment in whole seconds.
func NewTime(t time.Time) Time { return Time{t.UTC().Truncate(time.Second)} }

// NewMicroTime returns a moment in microseconds.
func NewMicroTime(t time.Time) MicroTime { return MicroTime{t.UTC().Truncate(time.Microsecond)} }

// MarshalJSON writes the time as Kubernetes does.
func (t Time) MarshalJSON() ([]byte, error) { return quoteTime(t.Time, time.RFC3339) }

// MarshalJSON writes the time as Kubernetes does: always with six digits.
func (t MicroTime) MarshalJSON() ([]byte, error) { return quoteTime(t.Time, microFormat) }

// quoteTime writes a time as JSON.
func quoteTime(t time.Time, format string) ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	b := append(make([]byte, 0, len(microFormat)+2), '"')
	return append(t.UTC().AppendFormat(b, format), '"'), nil
}

// The years that RFC 3339 can write.
var (
	minTime = time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)
	maxTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// parseTime reads a moment, and reports whether it is one.
func parseTime(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil && !t.UTC().Before(minTime) && t.UTC().Before(maxTime)
}
