package pool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
)

// A Selector says which units are good enough: those for which all its conditions hold. The zero Selector is
// content with any unit.
type Selector struct {
	text       string
	conditions []condition
	names      bool // one of them is about the name of a unit
}

// A condition compares one label of a unit.
type condition struct {
	key    string
	do     operator
	values []string
	number float64 // for the operators that compare numbers
}

type operator uint8

const (
	equal operator = iota
	different
	among
	atLeast
	atMost
	above
	below
)

// The keys that every unit has, beside its labels.
const (
	KeyHost = "host"
	KeyUnit = "unit"
)

// The bounds of a selector.
const (
	maxConditions = 8
	maxValues     = 64
)

// ParseSelector reads conditions with commas between them: model=H100, zone!=a, model in (H100, H200), memory>=40.
// A value with a space or one of ,()=!<>" in it stands in double quotes. The comparisons >=, <=, > and < are of
// numbers: a unit whose label is no number fails them.
func ParseSelector(text string) (Selector, error) {
	if len(text) > leasehold.MaxSelector {
		return Selector{}, fmt.Errorf("it has %d bytes: at most %d are allowed", len(text), leasehold.MaxSelector)
	}
	p := parser{rest: text}
	var list []condition
	for p.skip(); p.rest != ""; p.skip() {
		if len(list) > 0 && !p.take(",") {
			return Selector{}, fmt.Errorf("%q follows condition %d: put a comma between conditions", p.rest, len(list))
		}
		if len(list) == maxConditions {
			return Selector{}, fmt.Errorf("it has more than %d conditions", maxConditions)
		}
		c, err := p.condition()
		if err != nil {
			return Selector{}, err
		}
		list = append(list, c)
	}
	s := Selector{conditions: list}
	s.names = slices.ContainsFunc(list, func(c condition) bool { return c.key == KeyUnit })
	s.text = s.canonical()
	return s, nil
}

// String returns the selector in one form for all ways in which it can be written, apart from the order of its
// conditions. ParseSelector reads it back.
func (s Selector) String() string { return s.text }

// Conditions returns how many conditions there are.
func (s *Selector) Conditions() int { return len(s.conditions) }

// Matches reports whether a unit is good enough.
func (s *Selector) Matches(u *Unit) bool {
	for i := range s.conditions {
		if !s.conditions[i].holds(u) {
			return false
		}
	}
	return true
}

func (c *condition) holds(u *Unit) bool {
	value, known := u.label(c.key)
	switch c.do {
	case equal, among:
		return known && slices.Contains(c.values, value)
	case different:
		return !known || value != c.values[0]
	}
	n, err := strconv.ParseFloat(value, 64)
	if !known || err != nil {
		return false
	}
	switch c.do {
	case atLeast:
		return n >= c.number
	case atMost:
		return n <= c.number
	case above:
		return n > c.number
	}
	return n < c.number
}

// among returns the only values of a key that are good enough, in their order, if a condition says which these are.
func (s *Selector) among(key string) (values []string, said bool) {
	for i := range s.conditions {
		if c := &s.conditions[i]; c.key == key && (c.do == equal || c.do == among) {
			return c.values, true
		}
	}
	return nil, false
}

// label returns the value of one of a unit's labels, which are sorted; there are few.
func (u *Unit) label(key string) (string, bool) {
	switch key {
	case KeyHost:
		return u.Host, true
	case KeyUnit:
		return u.Name, true
	}
	for i := range u.Labels {
		if u.Labels[i].Key == key {
			return u.Labels[i].Value, true
		}
	}
	return "", false
}

var signs = [...]string{equal: "=", different: "!=", among: " in ", atLeast: ">=", atMost: "<=", above: ">", below: "<"}

func (s *Selector) canonical() string {
	var b strings.Builder
	for i, c := range s.conditions {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(c.key))
		b.WriteString(signs[c.do])
		values := make([]string, len(c.values))
		for k, v := range c.values {
			values[k] = quoted(v)
		}
		if c.do == among {
			b.WriteString("(" + strings.Join(values, ", ") + ")")
		} else {
			b.WriteString(values[0])
		}
	}
	return b.String()
}

const special = " \t\n,()=!<>\""

// quoted writes a key or a value as ParseSelector reads it.
func quoted(s string) string {
	if s == "" || s == "in" || strings.ContainsAny(s, special) {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// A parser reads a selector from left to right.
type parser struct{ rest string }

func (p *parser) skip() { p.rest = strings.TrimLeft(p.rest, " \t\n") }

// take reads a sign, if it comes next.
func (p *parser) take(sign string) bool {
	p.skip()
	if !strings.HasPrefix(p.rest, sign) {
		return false
	}
	p.rest = p.rest[len(sign):]
	return true
}

// condition reads one comparison, such as model=H100, memory>=40 or host in (a, b).
func (p *parser) condition() (c condition, err error) {
	if c.key, err = p.word("the name of a label"); err != nil {
		return c, err
	}
	if p.takeIn() {
		c.do = among
		c.values, err = p.set()
		return c, err
	}
	// The longer signs come first: ">=" begins with ">".
	for _, do := range [...]operator{different, atLeast, atMost, equal, above, below} {
		if !p.take(signs[do]) {
			continue
		}
		if do == equal {
			p.take("=") // as in programs: model==H100
		}
		c.do = do
		value, err := p.word("a value")
		if err != nil {
			return c, err
		}
		c.values = []string{value}
		if do >= atLeast {
			if c.number, err = strconv.ParseFloat(value, 64); err != nil || c.number != c.number {
				return c, fmt.Errorf("%s%s%s compares with %q, which is no number", c.key, signs[do], value, value)
			}
		}
		return c, nil
	}
	return c, fmt.Errorf("%q is no condition: use KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY>=N, KEY<=N, KEY>N or KEY<N",
		c.key)
}

// takeIn reads the word "in" before a set.
func (p *parser) takeIn() bool {
	p.skip()
	after, found := strings.CutPrefix(p.rest, "in")
	if !found || !strings.HasPrefix(strings.TrimLeft(after, " \t\n"), "(") {
		return false
	}
	p.rest = after
	return true
}

func (p *parser) set() (values []string, err error) {
	p.take("(")
	for {
		value, err := p.word("a value")
		if err != nil {
			return nil, err
		}
		if values = append(values, value); len(values) > maxValues {
			return nil, fmt.Errorf("a set has more than %d values", maxValues)
		}
		if p.take(")") {
			slices.Sort(values)
			return slices.Compact(values), nil
		}
		if !p.take(",") {
			return nil, fmt.Errorf("a set of values ends without )")
		}
	}
}

// word reads a key or a value. In quotes, two quotes stand for one.
func (p *parser) word(what string) (string, error) {
	p.skip()
	if !strings.HasPrefix(p.rest, `"`) {
		end := strings.IndexAny(p.rest, special)
		if end < 0 {
			end = len(p.rest)
		}
		if end == 0 {
			return "", fmt.Errorf("%s is missing before %q: put it in double quotes if it has one of ,()=!<> in it",
				what, p.rest)
		}
		word := p.rest[:end]
		p.rest = p.rest[end:]
		return word, nil
	}
	var b strings.Builder
	for rest := p.rest[1:]; ; {
		end := strings.IndexByte(rest, '"')
		if end < 0 {
			return "", fmt.Errorf("%s ends without a double quote", what)
		}
		b.WriteString(rest[:end])
		if rest = rest[end+1:]; !strings.HasPrefix(rest, `"`) {
			p.rest = rest
			return b.String(), nil
		}
		b.WriteByte('"')
		rest = rest[1:]
	}
}
