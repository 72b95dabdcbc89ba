// Package words writes commands of RESP, and reads the words of their replies. It is written by hand, and not by
// reflection: commands are many and small.
package words

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/leasehold/leasehold/internal/resp"
)

// An Encoder writes one command: words, then keywords with their values.
type Encoder struct {
	b     []byte
	words int
	Key   string   // makes the request idempotent
	Tag   string   // of the push that answers a wait
	Texts []string // that were written: an answer repeats most of them
	Named bool     // the answer is about one of them
	err   error
}

// headRoom is what the header of an array needs. It is written last, when the number of words is known.
const headRoom = 16

// Begin starts a command.
func (e *Encoder) Begin(words ...string) {
	var room [headRoom]byte
	e.b, e.words, e.Named, e.err = append(e.b[:0], room[:]...), 0, false, nil
	clear(e.Texts)
	e.Texts = e.Texts[:0]
	for _, w := range words {
		e.Word(w)
	}
}

func (e *Encoder) Word(text string) {
	e.b = resp.AppendBulk(e.b, text)
	e.words++
}

// Name writes a text that names something. One that is not UTF-8 is refused, as by HTTP: other clients could not
// Name it.
func (e *Encoder) Name(field, text string) {
	e.Check(field, text)
	e.Word(text)
	e.Texts = append(e.Texts, text)
}

// Check refuses texts that are not UTF-8.
func (e *Encoder) Check(field string, texts ...string) {
	for _, text := range texts {
		if !utf8.ValidString(text) && e.err == nil {
			e.err = fmt.Errorf("%s %q is not valid UTF-8", field, text)
		}
	}
}

// Text writes a field, unless it is empty.
func (e *Encoder) Text(keyword, field, text string) {
	if text != "" {
		e.Word(keyword)
		e.Name(field, text)
	}
}

func (e *Encoder) Number(keyword string, n int64) {
	if n != 0 {
		e.Word(keyword)
		e.b = resp.AppendBulkInt(e.b, n)
		e.words++
	}
}

func (e *Encoder) Unsigned(keyword string, n uint64) {
	if n != 0 {
		e.Word(keyword)
		var digits [20]byte
		e.b = resp.AppendBulk(e.b, strconv.AppendUint(digits[:0], n, 10))
		e.words++
	}
}

func (e *Encoder) Flag(keyword string, is bool) {
	if is {
		e.Word(keyword)
	}
}

func (e *Encoder) Bytes(value []byte) {
	e.b = resp.AppendBulk(e.b, value)
	e.words++
}

func (e *Encoder) Labels(labels map[string]string) {
	for key, value := range labels {
		if !utf8.ValidString(key+value) && e.err == nil {
			e.err = fmt.Errorf("labels: %q is not valid UTF-8", key+"="+value)
		}
	}
	if len(labels) > 0 {
		e.JSON("LABELS", labels)
	}
}

func (e *Encoder) JSON(keyword string, value any) {
	text, err := json.Marshal(value)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.Word(keyword)
	e.Bytes(text)
}

// End finishes the command, and returns it.
func (e *Encoder) End() ([]byte, error) {
	e.Text("KEY", "key", e.Key)
	var head [headRoom]byte
	header := resp.AppendArray(head[:0], e.words)
	start := headRoom - len(header)
	copy(e.b[start:], header)
	return e.b[start:], e.err
}
