package pool

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
)

// LimitText returns a limit as ParseLimit reads it.
func LimitText(l leasehold.UnitLimit) string {
	switch l.By {
	case leasehold.EachValue:
		return fmt.Sprintf("label:%s=%d", l.Name, l.Most)
	case leasehold.EachPrefix:
		return fmt.Sprintf("prefix:%s=%d", l.Name, l.Most)
	}
	return fmt.Sprintf("holder=%d", l.Most)
}

// ParseLimit reads holder=2 (each holder has at most two units), label:team=8 (all holders whose label team has one
// value have at most eight together) or prefix:ci/=4 (all whose name begins with ci/ have at most four together).
func ParseLimit(s string) (l leasehold.UnitLimit, err error) {
	at := strings.LastIndexByte(s, '=')
	if at >= 0 {
		l.Most, err = strconv.Atoi(s[at+1:])
	}
	if at < 0 || err != nil {
		return l, noLimit(s)
	}
	who, name, named := strings.Cut(s[:at], ":")
	l.Name = name
	switch {
	case who == "holder" && !named:
		l.By = leasehold.EachHolder
	case who == "label" && named:
		l.By = leasehold.EachValue
	case who == "prefix" && named:
		l.By = leasehold.EachPrefix
	default:
		return l, noLimit(s)
	}
	return l, nil
}

// ParseLimits reads several limits. An error is the caller's mistake.
func ParseLimits(texts []string) (list []leasehold.UnitLimit, err error) {
	for _, text := range texts {
		limit, err := ParseLimit(text)
		if err != nil {
			return nil, &leasehold.Error{Code: leasehold.Invalid, Message: "limits: " + err.Error()}
		}
		list = append(list, limit)
	}
	return list, nil
}

func noLimit(s string) error {
	return fmt.Errorf("%q is no limit of units: use holder=N, label:NAME=N or prefix:TEXT=N", s)
}
