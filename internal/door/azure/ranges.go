package azure

import (
	"strconv"
	"strings"
)

// A span is a part of a blob.
type span struct {
	from, length int64
	whole        bool // no range was asked for
}

// parseRange reads a Range header for a blob of a size. Azure takes one range, with a beginning;
// anything else counts as no range, as HTTP says.
func parseRange(value string, size int64) (span, error) {
	whole := span{0, size, true}
	given, ok := strings.CutPrefix(value, "bytes=")
	if !ok {
		return whole, nil
	}
	first, last, ok := strings.Cut(given, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if !ok || err != nil || from < 0 {
		return whole, nil
	}
	to := size - 1
	if last != "" {
		end, err := strconv.ParseInt(last, 10, 64)
		if err != nil || end < from {
			return whole, nil
		}
		to = min(to, end)
	}
	if from >= size {
		return span{}, errInvalidRange
	}
	return span{from: from, length: to - from + 1}, nil
}
