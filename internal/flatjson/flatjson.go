// Package flatjson reads and writes the JSON that most requests and answers are: one object of names, short texts and
// whole numbers, with nothing inside that. It does so several times as fast as encoding/json, and leaves everything
// else to that, so nobody has to know which of the two it was.
package flatjson

import (
	"math"

	"github.com/leasehold/leasehold/internal/resp"
)

// Read calls each with every member of an object, in order: texts as Bulk, whole numbers as Integer, and also Boolean
// and Null. It reports false if each does, or if the text is not of that kind, whether valid or not; then
// encoding/json has to read it. Texts are parts of body.
func Read(body []byte, each func(name []byte, v resp.Value) bool) bool {
	s := scanner{rest: body}
	if !s.next('{') {
		return false
	}
	if s.next('}') {
		return s.atEnd()
	}
	for {
		name, ok := s.text()
		if !ok || !s.next(':') {
			return false
		}
		v, ok := s.value()
		if !ok || !each(name, v) {
			return false
		}
		if s.next(',') {
			continue
		}
		return s.next('}') && s.atEnd()
	}
}

// AppendText adds a text in quotes. It reports false if some of it would have to be escaped.
func AppendText(b []byte, text string) ([]byte, bool) {
	for i := range len(text) {
		if !plain(text[i]) || text[i] == '<' || text[i] == '>' || text[i] == '&' { // as encoding/json has it
			return b, false
		}
	}
	return append(append(append(b, '"'), text...), '"'), true
}

// plain reports whether a byte is a character of its own, and the same in quotes.
func plain(c byte) bool { return c >= ' ' && c < 0x7f && c != '"' && c != '\\' }

type scanner struct{ rest []byte }

func (s *scanner) skip() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\n' || s.rest[0] == '\r' || s.rest[0] == '\t') {
		s.rest = s.rest[1:]
	}
}

func (s *scanner) atEnd() bool {
	s.skip()
	return len(s.rest) == 0
}

// next passes a character, if it is the next one.
func (s *scanner) next(c byte) bool {
	s.skip()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text reads a text without escapes, all of it in ASCII.
func (s *scanner) text() ([]byte, bool) {
	if !s.next('"') {
		return nil, false
	}
	for i, c := range s.rest {
		if !plain(c) {
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text, c == '"'
		}
	}
	return nil, false
}

func (s *scanner) value() (v resp.Value, ok bool) {
	s.skip()
	switch {
	case len(s.rest) == 0:
		return v, false
	case s.rest[0] == '"':
		text, ok := s.text()
		return resp.Value{Kind: resp.Bulk, Text: text}, ok
	case s.rest[0] >= '0' && s.rest[0] <= '9':
		return s.number()
	case s.word("null"):
		return resp.Value{Kind: resp.Null}, true
	case s.word("true"):
		return resp.Value{Kind: resp.Boolean, Int: 1}, true
	case s.word("false"):
		return resp.Value{Kind: resp.Boolean}, true
	}
	return v, false
}

func (s *scanner) word(word string) bool {
	if len(s.rest) < len(word) || string(s.rest[:len(word)]) != word {
		return false
	}
	s.rest = s.rest[len(word):]
	return true
}

// number reads a whole number without a sign. What may follow is checked by those who look for what comes next.
func (s *scanner) number() (v resp.Value, ok bool) {
	v.Kind = resp.Integer
	i := 0
	for ; i < len(s.rest) && s.rest[i] >= '0' && s.rest[i] <= '9'; i++ {
		if v.Int > (math.MaxInt64-9)/10 {
			return v, false
		}
		v.Int = v.Int*10 + int64(s.rest[i]-'0')
	}
	leading := s.rest[0] == '0' && i > 1
	s.rest = s.rest[i:]
	return v, !leading
}
