package tfstate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// A state can be 256 MiB, and most callers need four fields of it. encoding/json would hold all of
// it in memory, and accepts duplicate keys; so there is a scanner here that reads a stream byte by
// byte, keeps only those fields, and still refuses what is not valid JSON.

// A Head is what a state says about itself.
type Head struct {
	Version   int64 // of the format; 0: it does not say
	Serial    uint64
	Lineage   string
	Terraform string // the version of the program that wrote it
	Encrypted bool   // by OpenTofu: only the serial and the lineage can be read
}

// ReadHead reads the head of a state. It stops as soon as it has all fields, which are usually near
// the beginning.
func ReadHead(r io.Reader) (Head, error) {
	s := NewScanner()
	buffer := make([]byte, 4<<10)
	for {
		n, err := r.Read(buffer)
		if failed := s.write(buffer[:n]); failed != nil {
			return Head{}, failed
		}
		if s.enough() {
			return s.Head()
		}
		if err == io.EOF {
			if err := s.End(); err != nil {
				return Head{}, err
			}
			return s.Head()
		}
		if err != nil {
			return Head{}, err
		}
	}
}

// WithSerial returns a state with another serial, and otherwise the same bytes. Decoding and
// encoding it again could change numbers or fields that only Terraform understands.
func WithSerial(state []byte, serial uint64) ([]byte, error) {
	s := NewScanner()
	_ = s.write(state) // End tells too
	if err := s.End(); err != nil {
		return nil, err
	}
	if _, err := s.Head(); err != nil {
		return nil, err
	}
	changed := strconv.AppendUint(slices.Clone(state[:s.serialFrom]), serial, 10)
	return append(changed, state[s.serialTo:]...), nil
}

// A Scanner checks that what is written to it is one JSON object, and notes the fields of its head.
// It keeps nothing else: a single string of a state may be as large as the state.
type Scanner struct {
	at     int64 // bytes seen
	expect expect
	nest   []byte // '{' and '[' that are open
	in     inside

	word   []byte // of a number or a literal, and how much of it
	text   []byte // of a string that matters: a key of the outermost object, or a field's value
	keep   bool   // the string matters
	cut    bool   // it is longer than what could matter
	key    string // of the outermost object
	isKey  bool
	hex    int // digits of \uXXXX still to come
	values map[string]string
	found  int  // bits of the fields
	sealed bool // encrypted_data is among the keys
	failed error

	serialFrom, serialTo int64 // where the serial stands
}

// What may come next, outside of strings and words.
type expect uint8

const (
	expectValue      expect = iota
	expectValueOrEnd        // after [
	expectKey
	expectKeyOrEnd // after {
	expectColon
	expectCommaOrEnd
	expectNothing // after the object
)

// What the scanner is inside of.
type inside uint8

const (
	insideNothing inside = iota
	insideString
	insideEscape
	insideHex
	insideWord
)

// The fields of a head.
var fields = []string{"serial", "lineage", "version", "terraform_version"}

const (
	someFields = 1<<2 - 1 // that every state has
	allFields  = 1<<4 - 1

	maxNest = 10000 // as encoding/json has it
	maxText = 1024  // of a key or field that matters
)

// NewScanner returns a Scanner of one state.
func NewScanner() *Scanner { return &Scanner{values: map[string]string{}} }

// Write takes the next part. The error says what is wrong; after the first error, every call
// returns it again.
func (s *Scanner) Write(p []byte) (int, error) { return len(p), s.write(p) }

// Err returns what is wrong with the text so far; nil if nothing is.
func (s *Scanner) Err() error { return s.failed }

func (s *Scanner) write(p []byte) error {
	for i := 0; i < len(p) && s.failed == nil; i++ {
		if s.in == insideString && !s.keep {
			i = s.skip(p, i)
			if i == len(p) {
				break
			}
		}
		s.failed = s.next(p[i])
		s.at++
	}
	return s.failed
}

// skip goes to where a string that does not matter may end. Most bytes of a large state are in such
// strings, so this loop decides how fast it is.
func (s *Scanner) skip(p []byte, i int) int {
	for i < len(p) && p[i] != '"' && p[i] != '\\' && p[i] >= ' ' {
		i++
		s.at++
	}
	return i
}

func (s *Scanner) next(c byte) error {
	switch s.in {
	case insideString:
		return s.inString(c)
	case insideEscape:
		return s.inEscape(c)
	case insideHex:
		return s.inHex(c)
	case insideWord:
		if wordly(c) {
			if len(s.word) >= maxText {
				return s.bad("a number that is too long")
			}
			s.word = append(s.word, c)
			return nil
		}
		if err := s.endWord(); err != nil {
			return err
		}
	}
	return s.between(c)
}

// between takes a byte that belongs to no string and no word.
func (s *Scanner) between(c byte) error {
	switch c {
	case ' ', '\t', '\r', '\n':
		return nil
	}
	if len(s.nest) == 0 && s.expect == expectValue && c != '{' {
		return s.bad("no object")
	}
	switch s.expect {
	case expectNothing:
		return s.bad("something after the end")
	case expectKey, expectKeyOrEnd:
		if c == '}' && s.expect == expectKeyOrEnd {
			return s.close(c)
		}
		if c != '"' {
			return s.bad("no key where one has to be")
		}
		s.begin(true)
		return nil
	case expectColon:
		if c != ':' {
			return s.bad("no colon after a key")
		}
		s.expect = expectValue
		return nil
	case expectCommaOrEnd:
		if c != ',' {
			return s.close(c)
		}
		if s.expect = expectValue; s.nest[len(s.nest)-1] == '{' {
			s.expect = expectKey
		}
		return nil
	}
	return s.value(c)
}

// value takes the first byte of a value.
func (s *Scanner) value(c byte) error {
	switch {
	case c == ']' && s.expect == expectValueOrEnd:
		return s.close(c)
	case c == '"':
		s.begin(false)
	case c == '{' || c == '[':
		if len(s.nest) == maxNest {
			return s.bad("too much inside of each other")
		}
		s.nest = append(s.nest, c)
		if s.expect = expectKeyOrEnd; c == '[' {
			s.expect = expectValueOrEnd
		}
	case wordly(c):
		s.in, s.word = insideWord, append(s.word[:0], c)
	default:
		return s.bad(fmt.Sprintf("%q where a value has to be", c))
	}
	return nil
}

func (s *Scanner) close(c byte) error {
	open := byte('{')
	if c == ']' {
		open = '['
	}
	if c != ']' && c != '}' || len(s.nest) == 0 || s.nest[len(s.nest)-1] != open {
		return s.bad(fmt.Sprintf("%q where a comma or an end has to be", c))
	}
	s.nest = s.nest[:len(s.nest)-1]
	s.expect = expectCommaOrEnd
	if len(s.nest) == 0 {
		s.expect = expectNothing
	}
	return nil
}

// begin enters a string.
func (s *Scanner) begin(isKey bool) {
	s.in, s.isKey, s.cut, s.text = insideString, isKey, false, s.text[:0]
	s.keep = len(s.nest) == 1 && (isKey || field(s.key) >= 0)
}

func (s *Scanner) inString(c byte) error {
	switch {
	case c == '"':
		s.in = insideNothing
		return s.endString()
	case c == '\\':
		s.in = insideEscape
	case c < ' ':
		return s.bad("a control character in a string")
	}
	s.take(c)
	return nil
}

func (s *Scanner) inEscape(c byte) error {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.in = insideString
	case 'u':
		s.in, s.hex = insideHex, 4
	default:
		return s.bad("an unknown escape")
	}
	s.take(c)
	return nil
}

func (s *Scanner) inHex(c byte) error {
	if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
		return s.bad("an unknown escape")
	}
	if s.hex--; s.hex == 0 {
		s.in = insideString
	}
	s.take(c)
	return nil
}

// take keeps a byte of a string that matters.
func (s *Scanner) take(c byte) {
	if !s.keep || s.cut {
		return
	}
	if len(s.text) == maxText {
		s.cut = true
		return
	}
	s.text = append(s.text, c)
}

func (s *Scanner) endString() error {
	if s.isKey {
		s.expect = expectColon
		if len(s.nest) == 1 {
			s.key = s.plain()
			s.sealed = s.sealed || s.key == "encrypted_data"
		}
		return nil
	}
	if s.expect = expectCommaOrEnd; !s.keep {
		return nil
	}
	if s.cut {
		return s.bad("a " + s.key + " that is too long")
	}
	return s.note(`"` + string(s.text) + `"`)
}

// plain returns a key without its escapes; empty if it does not matter. Escapes have to be resolved:
// "\u0073erial" is a serial too.
func (s *Scanner) plain() (key string) {
	if bytes.IndexByte(s.text, '\\') < 0 && field(string(s.text)) < 0 && string(s.text) != "encrypted_data" {
		return "" // as nearly all keys: they are not worth a text of their own
	}
	if s.cut || json.Unmarshal([]byte(`"`+string(s.text)+`"`), &key) != nil {
		return ""
	}
	return key
}

// endWord takes a number, true, false or null.
func (s *Scanner) endWord() error {
	s.in, s.expect = insideNothing, expectCommaOrEnd
	if !json.Valid(s.word) {
		return s.bad(fmt.Sprintf("%q where a value has to be", s.word))
	}
	if len(s.nest) == 1 && field(s.key) >= 0 {
		if s.key == "serial" {
			s.serialFrom, s.serialTo = s.at-int64(len(s.word)), s.at
		}
		return s.note(string(s.word))
	}
	return nil
}

// note keeps a field of the head. A field that is there twice is refused, because readers disagree
// about which one counts.
func (s *Scanner) note(value string) error {
	bit := 1 << field(s.key)
	if s.found&bit != 0 {
		return s.bad("the field " + s.key + " twice")
	}
	s.found |= bit
	s.values[s.key] = value
	return nil
}

// enough reports whether all fields are known that a head can have.
func (s *Scanner) enough() bool {
	// An encrypted state has only the first two fields in the clear.
	return s.found == allFields || s.sealed && s.found&someFields == someFields
}

// End reports whether the state is complete. Call it when nothing more comes.
func (s *Scanner) End() error {
	switch {
	case s.failed != nil:
		return s.failed
	case s.expect != expectNothing:
		return s.bad("an end too early")
	}
	return nil
}

// Head returns what the fields say.
func (s *Scanner) Head() (h Head, err error) {
	_, hasVersion := s.values["version"]
	// Terraform's serial is signed 64 bits wide, so the largest is below 2^63.
	serial, err := strconv.ParseUint(s.values["serial"], 10, 63)
	if err != nil {
		return h, wrongState("it has no serial that is a number, 0 or more")
	}
	h.Serial = serial
	if json.Unmarshal([]byte(s.values["lineage"]), &h.Lineage) != nil || h.Lineage == "" {
		return h, wrongState("it has no lineage that is a text")
	}
	if h.Encrypted = s.sealed; hasVersion || !h.Encrypted {
		if h.Version, err = strconv.ParseInt(s.values["version"], 10, 32); err != nil || h.Version < 1 {
			return h, wrongState("it has no version that is a number")
		}
	}
	if text, ok := s.values["terraform_version"]; ok {
		_ = json.Unmarshal([]byte(text), &h.Terraform) // it is for people to read
	}
	return h, nil
}

func (s *Scanner) bad(what string) error {
	return wrongState(fmt.Sprintf("it is not valid JSON: there is %s at byte %d", what, s.at))
}

func wrongState(why string) error {
	return invalid("this is not a state of Terraform or OpenTofu: %s", why)
}

// field returns the index of a key among the fields of a head; -1 if it is none.
func field(key string) int {
	for i, name := range fields {
		if name == key {
			return i
		}
	}
	return -1
}

// wordly reports whether a byte can be part of a number, true, false or null. Whether the whole is
// one is checked at its end.
func wordly(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}
