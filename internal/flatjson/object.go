package flatjson

import (
	"bytes"

	"github.com/leasehold/leasehold/internal/resp"
)

// An Object is read into the same value as what says the same in RESP.
type Object struct {
	Text  bytes.Buffer
	items []resp.Value
}

// Value returns the object as a map. It reports false where Read does. The value is good until the next call.
func (o *Object) Value() (v resp.Value, ok bool) {
	o.items = o.items[:0]
	ok = Read(o.Text.Bytes(), o.member)
	return resp.Value{Kind: resp.Map, Items: o.items}, ok
}

func (o *Object) member(name []byte, v resp.Value) bool {
	o.items = append(o.items, resp.Value{Kind: resp.Bulk, Text: name}, v)
	return true
}

// A Writer writes an object of texts.
type Writer struct {
	bytes []byte
	bad   bool
}

// Text adds a text after what comes before it, which is its name and the like.
func (w *Writer) Text(before, text string) {
	b, ok := AppendText(append(w.bytes, before...), text)
	w.bytes, w.bad = b, w.bad || !ok
}

// Optional is Text, unless the text is empty.
func (w *Writer) Optional(before, text string) {
	if text != "" {
		w.Text(before, text)
	}
}

// End returns the object. It reports false if some of it would have to be escaped.
func (w *Writer) End() ([]byte, bool) { return append(w.bytes, '}'), !w.bad }
