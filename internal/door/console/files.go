package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/door"
)

// policy is what a browser may do for the page: use what this server serves, and nothing else. No script and no style
// is part of the page itself, so a name that is shown unescaped by mistake would still do nothing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// assets is the directory of files whose names change with what is in them: they are kept for ever.
const assets = "assets/"

// types are the content types of the files. What the machine's own tables say is not asked: a browser that is told
// another type does not run a script.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".map": "application/json",
	".ico": "image/x-icon", ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
}

// A file is one that browsers ask for.
type file struct {
	kind, cache string
	plain       []byte
	tag         string
	zipped      func() []byte // shorter than plain, or nil
}

// load reads all files.
func load(files fs.FS) (map[string]*file, error) {
	loaded := map[string]*file{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err == nil {
			loaded[name], err = newFile(name, text)
		}
		return err
	})
	if err == nil && loaded[index] == nil {
		err = errors.New("the console has no " + index)
	}
	return loaded, err
}

func newFile(name string, text []byte) (*file, error) {
	f := &file{kind: types[path.Ext(name)], cache: "no-cache", plain: text}
	if f.kind == "" {
		return nil, fmt.Errorf("the console's file %s is of no type that is served", name)
	}
	if strings.HasPrefix(name, assets) {
		f.cache = "public, max-age=31536000, immutable"
	}
	sum := sha256.Sum256(text)
	f.tag = hex.EncodeToString(sum[:12])
	f.zipped = sync.OnceValue(func() []byte { return zip(text) })
	return f, nil
}

// zip returns a text compressed, or nil if that does not help.
func zip(text []byte) []byte {
	var short bytes.Buffer
	w, _ := gzip.NewWriterLevel(&short, gzip.BestCompression) // the level is a valid one
	_, _ = w.Write(text)                                      // a buffer takes everything
	_ = w.Close()
	if short.Len() >= len(text) {
		return nil
	}
	return short.Bytes()
}

// ServeHTTP answers a GET or a HEAD.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	secure(h)
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	h.Add("Vary", "Accept-Encoding")
	text, tag := f.plain, f.tag
	if acceptsGzip(r) {
		if short := f.zipped(); short != nil {
			h.Set("Content-Encoding", "gzip")
			text, tag = short, tag+"-gzip"
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

// acceptsGzip reports whether a client takes an answer that is compressed.
func acceptsGzip(r *http.Request) bool {
	for _, value := range r.Header["Accept-Encoding"] {
		for one := range strings.SplitSeq(value, ",") {
			coding, parameters, err := mime.ParseMediaType(one)
			if err == nil && coding == "gzip" && !refusedByWeight(parameters["q"]) {
				return true
			}
		}
	}
	return false
}

// refusedByWeight reports whether a weight is zero.
func refusedByWeight(q string) bool { return q != "" && strings.Trim(q, "0.") == "" }

// secure sets what every answer of this door has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// wrongMethod answers what a path is not for.
func wrongMethod(allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		refuse(w, r, door.Invalidly(http.StatusMethodNotAllowed, "%s is not for %s: use %s", door.Brief(r.URL.Path),
			door.Brief(r.Method), allow))
	}
}
