package object

import (
	"fmt"
	"slices"
	"strings"
)

// A LabelSelector picks objects by their labels. The zero LabelSelector picks all.
type LabelSelector []requirement

// A requirement is one condition on a label.
type requirement struct {
	key    string
	how    string // in, notin, exists, absent
	values []string
}

// Picks reports whether the labels of an object meet all conditions.
func (s LabelSelector) Picks(labels map[string]string) bool {
	for i := range s {
		if !s[i].met(labels) {
			return false
		}
	}
	return true
}

// met reports whether labels meet the condition. A label that is not there is in no list of values.
func (r *requirement) met(labels map[string]string) bool {
	value, found := labels[r.key]
	switch r.how {
	case "in":
		return found && slices.Contains(r.values, value)
	case "notin":
		return !found || !slices.Contains(r.values, value)
	case "exists":
		return found
	}
	return !found
}

// ParseLabels reads a label selector, such as "app=x,tier in (a, b),!old".
func ParseLabels(text string) (LabelSelector, error) {
	var s LabelSelector
	for rest := text; strings.TrimSpace(rest) != ""; {
		part, after, err := nextRequirement(rest)
		if err != nil {
			return nil, fmt.Errorf("unable to parse requirement: %w", err)
		}
		r, err := parseRequirement(part)
		if err != nil {
			return nil, fmt.Errorf("unable to parse requirement: %w", err)
		}
		s, rest = append(s, r), after
	}
	return s, nil
}

// nextRequirement cuts a selector at the first comma that is not in parentheses.
func nextRequirement(text string) (part, rest string, err error) {
	inside := false
	for i, c := range text {
		switch {
		case c == '(':
			inside = true
		case c == ')':
			inside = false
		case c == ',' && !inside:
			if strings.TrimSpace(text[i+1:]) == "" {
				return "", "", fmt.Errorf("found '', expected: identifier after ','")
			}
			return text[:i], text[i+1:], nil
		}
	}
	return text, "", nil
}

// parseRequirement reads one condition.
func parseRequirement(text string) (requirement, error) {
	text = strings.TrimSpace(text)
	if key, found := strings.CutPrefix(text, "!"); found && !strings.HasPrefix(key, "=") {
		return checkRequirement(requirement{key: strings.TrimSpace(key), how: "absent"})
	}
	for _, o := range []struct{ sign, how string }{{"!=", "notin"}, {"==", "in"}, {"=", "in"}} {
		if key, value, found := strings.Cut(text, o.sign); found {
			return checkRequirement(requirement{strings.TrimSpace(key), o.how, []string{strings.TrimSpace(value)}})
		}
	}
	key, rest, found := strings.Cut(text, " ")
	if !found && !strings.Contains(text, "(") {
		return checkRequirement(requirement{key: text, how: "exists"})
	}
	how, list, found := strings.Cut(strings.TrimSpace(rest), "(")
	list, closed := strings.CutSuffix(strings.TrimSpace(list), ")")
	how = strings.TrimSpace(how)
	if !found || !closed || how != "in" && how != "notin" {
		return requirement{}, fmt.Errorf("%s is not understood: write key=value, key!=value, key in (a,b), "+
			"key notin (a,b), key or !key", quoted(text))
	}
	r := requirement{key: key, how: how}
	for value := range strings.SplitSeq(list, ",") {
		r.values = append(r.values, strings.TrimSpace(value))
	}
	return checkRequirement(r)
}

// checkRequirement refuses conditions on labels that no object can have.
func checkRequirement(r requirement) (requirement, error) {
	if detail := checkQualified(r.key); detail != "" {
		return r, fmt.Errorf("key: Invalid value: %s: %s", quoted(r.key), detail)
	}
	for _, value := range r.values {
		if detail := checkLabelValue(value); detail != "" {
			return r, fmt.Errorf("values: Invalid value: %s: %s", quoted(value), detail)
		}
	}
	return r, nil
}

// A FieldSelector picks objects by their names. The zero FieldSelector picks all.
type FieldSelector struct {
	Name string // that an object has to have; empty: any

	namespace    string
	notName      []string
	notNamespace []string
	none         bool // two conditions contradict each other
}

// ParseFields reads a field selector, such as "metadata.name=x". Leases can be picked by name and namespace.
func ParseFields(text string) (s FieldSelector, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		key, value, equal := strings.Cut(part, "=")
		key, not := strings.CutSuffix(key, "!")
		value = strings.TrimPrefix(value, "=")
		if !equal {
			return s, fmt.Errorf("invalid selector: %s; can't understand %s", quoted(text), quoted(part))
		}
		switch {
		case key == "metadata.name" && not:
			s.notName = append(s.notName, value)
		case key == "metadata.name":
			s.must(&s.Name, value)
		case key == "metadata.namespace" && not:
			s.notNamespace = append(s.notNamespace, value)
		case key == "metadata.namespace":
			s.must(&s.namespace, value)
		default:
			return s, fmt.Errorf("field label not supported: %s", key)
		}
	}
	return s, nil
}

// must takes a value that a field has to have.
func (s *FieldSelector) must(field *string, value string) {
	s.none = s.none || *field != "" && *field != value || value == ""
	*field = value
}

// Picks reports whether an object is picked.
func (s *FieldSelector) Picks(m *Meta) bool {
	return !s.none && (s.Name == "" || s.Name == m.Name) && (s.namespace == "" || s.namespace == m.Namespace) &&
		!slices.Contains(s.notName, m.Name) && !slices.Contains(s.notNamespace, m.Namespace)
}
