package command

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
)

// A Note is what a command says of itself for the journal: what it asks for, and who asks, as it calls itself. A
// command that only names a lease or a session says nothing of the latter.
type Note struct {
	Verb      string
	Namespace string
	Resource  string // or the path of a record
	ID        string // of a lease
	Foreign   string
	Holder    string
	Session   string
	Token     leasehold.Token
	What      string // it does, where the rest does not say so; of any length
	Reason    string
	By        string
	Actor     string
}

// NoteOf returns the note of a command; the zero one if the journal has no line of it by itself.
func NoteOf(c Command) Note {
	row := VerbOf(c)
	if row.Quiet != "" {
		return Note{}
	}
	if r, ok := c.(*Reserve); ok && r.Extends() {
		return Note{} // a server plans more of a series: its events tell
	}
	n := c.(noted).note()
	if n.Verb == "" {
		n.Verb = row.Name
	}
	if n.Namespace == "" {
		// What is about the whole cluster stands in the default namespace, where people look.
		n.Namespace = leasehold.DefaultNamespace
	}
	// Who wanted a record need not be who writes it.
	if _, put := c.(*PutRecord); n.Actor == "" && !put {
		n.Actor = n.By
	}
	return n
}

// noted is a command that the journal has a line of.
type noted interface{ note() Note }

func (c *OpenSession) note() Note { return Note{Namespace: c.Namespace, Session: c.ID} }

func (c *CloseSession) note() Note {
	n := Note{Namespace: c.Namespace, Session: c.ID}
	if c.Abandon {
		n.Verb = "abandon-session"
	}
	return n
}

func (c *Acquire) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Resource, ID: c.ID, Foreign: c.Foreign, Holder: c.Holder,
		Session: c.Session, Reason: c.Reason, Actor: c.Holder}
}

func (c *Release) note() Note { return Note{Namespace: c.Namespace, ID: c.ID} }

func (c *Change) note() Note {
	n := Note{Namespace: c.Namespace, ID: c.ID, Foreign: c.Foreign, Holder: c.Holder}
	if c.About != nil {
		n.Holder, n.Reason = c.About.Holder, c.About.Reason
	}
	return n
}

func (c *Break) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Resource, ID: c.ID, Token: c.Token, Reason: c.Reason, By: c.By}
}

func (c *Ask) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Resource, Reason: c.Message, By: c.By}
}

func (c *Move) note() Note { return Note{Namespace: c.Namespace, ID: c.ID, Reason: c.Reason, By: c.By} }

func (c *PutRecord) note() Note {
	n := Note{Namespace: c.Namespace, Resource: c.Path, Session: c.Session, ID: c.Fence.Lease, Token: c.Fence.Token,
		Reason: c.Reason, By: c.By}
	if c.Link != nil {
		n.ID, n.Foreign, n.Holder, n.Actor = c.Link.ID, c.Link.Foreign, c.Link.Holder, c.Link.Holder
	}
	return n
}

func (c *DeleteRecord) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Path, ID: c.Fence.Lease, Token: c.Fence.Token}
}

func (c *Txn) note() Note { return Note{Namespace: c.Namespace} }

func (c *Define) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Definition.Path, Reason: c.Reason, By: c.By}
}

func (c *Undefine) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Path, Reason: c.Reason, By: c.By}
}

func (c *SetUnits) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Resource, Reason: c.Reason, By: c.By}
}

func (c *Drain) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Resource, Reason: c.Why, By: c.By}
}

func (c *PutTask) note() Note { return Note{Namespace: c.Namespace, Resource: c.Path, By: c.By} }

func (c *FinishTask) note() Note {
	n := Note{Namespace: c.Namespace, ID: c.ID, Token: c.Token, What: leasehold.TaskDone.String()}
	if c.Failed {
		n.What = strings.TrimSuffix(leasehold.TaskFailed.String()+": "+c.Result, ": ")
	}
	return n
}

func (c *Reserve) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Resource, ID: c.ID, Holder: c.Holder, Reason: c.Reason,
		Actor: c.Holder}
}

func (c *CancelReservation) note() Note {
	return Note{Namespace: c.Namespace, ID: c.ID, Reason: c.Reason, By: c.By}
}

func (c *Acknowledge) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Resource, Token: c.Token, Reason: c.Reason, By: c.By}
}

func (c *AcknowledgeAlarm) note() Note {
	return Note{Namespace: c.Namespace, Resource: c.Resource, ID: c.ID, Session: c.Session, What: c.Kind.String(),
		Reason: c.Reason, By: c.By}
}

func (c *SetCaps) note() Note {
	var parts []string
	for _, limit := range []struct {
		n    int
		what string
	}{
		{c.Caps.Leases, "leases"}, {c.Caps.Sessions, "sessions"}, {c.Caps.Waiters, "waiters"},
		{c.Caps.Namespaces, "namespaces"},
	} {
		if limit.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", limit.n, limit.what))
		}
	}
	return Note{What: strings.Join(parts, ", "), Reason: c.Reason, By: c.By}
}

func (c *EndQuarantine) note() Note { return Note{Reason: c.Reason, By: c.By} }

func (c *RaiseTokens) note() Note {
	return Note{Namespace: c.Namespace, Token: c.Above, Reason: c.Reason, By: c.By}
}

// The note of a change of access has names alone.
func (c *ChangeAccess) note() Note {
	var parts []string
	if put := c.Put.Keys(); put.Len() > 0 {
		parts = append(parts, "sets "+put.Text())
	}
	if c.Remove.Len() > 0 {
		parts = append(parts, "removes "+c.Remove.Text())
	}
	if c.Replace {
		parts = append(parts, "removes all else but tokens")
	}
	if c.Off {
		parts = append(parts, "switches access control off")
	}
	return Note{What: strings.Join(parts, "; "), Reason: c.Reason, By: c.By}
}
