package resp

import "strconv"

// A Kind is the first byte of a value.
type Kind byte

// The kinds of values. RESP2's nulls are Null, a bulk error is an Error, and a verbatim string
// is a Bulk.
const (
	Simple  Kind = '+'
	Error   Kind = '-'
	Integer Kind = ':'
	Bulk    Kind = '$'
	Array   Kind = '*'
	Null    Kind = '_'
	Boolean Kind = '#'
	Double  Kind = ','
	Big     Kind = '(' // a number of any size, as Text
	Map     Kind = '%'
	Set     Kind = '~'
	Push    Kind = '>'
)

// A Value is one reply, or a part of one.
type Value struct {
	Kind  Kind
	Text  []byte  // of Simple, Error, Bulk, Double and Big
	Int   int64   // of Integer and Boolean
	Items []Value // of Array, Set and Push; of Map: key, value, key, value
}

// IsNull reports whether there is nothing.
func (v *Value) IsNull() bool { return v.Kind == Null }

// Bool reports whether the value is true, also as RESP2 has it.
func (v *Value) Bool() bool { return v.Int != 0 }

// Float returns a number; 0: it is none.
func (v *Value) Float() float64 {
	if v.Kind == Integer {
		return float64(v.Int)
	}
	f, _ := strconv.ParseFloat(string(v.Text), 64)
	return f
}

// Code returns the first word of an error, such as HELD, and the rest of it.
func (v *Value) Code() (code, text string) {
	for i, c := range v.Text {
		if c == ' ' {
			return string(v.Text[:i]), string(v.Text[i+1:])
		}
	}
	return string(v.Text), ""
}

// A Failure is an error with a code of the protocol's own, such as WRONGPASS.
type Failure struct{ Code, Text string }

// Error returns the code and what it says.
func (f *Failure) Error() string { return f.Code + " " + f.Text }
