package audit

import (
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
)

// describe returns what a command asks for, as far as it says so itself, and who asks, as it calls itself.
func describe(c core.Command) Line {
	n := command.NoteOf(c)
	return Line{Verb: n.Verb, Namespace: n.Namespace, Resource: n.Resource, ID: n.ID, Foreign: n.Foreign,
		Holder: n.Holder, Session: n.Session, Token: n.Token, Reason: reason(n), By: n.By, Actor: n.Actor}
}

// reason is what a command does, where only words say so, and why.
func reason(n command.Note) string {
	switch {
	case n.What == "":
		return n.Reason
	case n.Reason == "":
		return brief(n.What)
	}
	return brief(n.What) + ": " + n.Reason
}
