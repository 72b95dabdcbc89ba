package usage

import (
	"strings"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
)

// Two jobs on one pool may take a minute and a day: what is usual on the pool says little about either. So a lease
// that says what it is for is learned by its kind, too: by the label kind, or by the label command and the holder's
// name without its number. Leases that say neither cost nothing.

// MaxKindName is how many bytes the name of a kind has at most.
const MaxKindName = 64

// The labels by which a kind is told.
const (
	kindLabel    = "kind"
	commandLabel = "command"
)

// KindName returns the kind of a lease by what it says of itself; empty if it says nothing.
func KindName(labels leasehold.Labels, holder string) string {
	command := ""
	for _, label := range labels {
		switch label.Key {
		case kindLabel:
			if label.Value != "" {
				return cutName(label.Value)
			}
		case commandLabel:
			command = label.Value
		}
	}
	if command == "" {
		return ""
	}
	return cutName(cutName(command) + "|" + unnumbered(holder))
}

// unnumbered returns a name without the number at its end: trainer-17 and ann:4711 are trainer and ann.
func unnumbered(name string) string {
	short := strings.TrimRight(name, "0123456789-_.:#/@ ")
	if short == "" {
		return name
	}
	return short
}

// cutName cuts a text to the length of a kind's name, between two characters.
func cutName(text string) string {
	if len(text) <= MaxKindName {
		return text
	}
	end := MaxKindName
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
