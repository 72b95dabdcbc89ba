package v1

import (
	"net/url"
	"strconv"
	"strings"
)

// escape returns a name as one segment of a path. Dots are escaped where they would mean another
// path.
func escape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// escapePath returns the path of a resource for a URL. Names that no URL path can express are
// left for the server to refuse.
func escapePath(path string) string {
	// Proxies and routers clean such paths, and the request would then name another resource.
	if strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
		return url.PathEscape(path)
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = escape(s)
	}
	return strings.Join(segments, "/")
}

// EscapePath returns a path as it is written in a URL.
func EscapePath(path string) string { return escapePath(path) }

func setText(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

func setNumber(query url.Values, name string, value int) {
	if value != 0 {
		query.Set(name, strconv.Itoa(value))
	}
}
