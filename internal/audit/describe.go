package audit

import (
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// describe returns what a command asks for, as far as it says so itself, and who asks, as it
// calls itself. A command that only names a lease or a session says nothing of the latter.
func describe(c core.Command) Line {
	switch c := c.(type) {
	case *core.Acquire:
		return Line{Verb: "acquire", Namespace: c.Namespace, Resource: c.Resource, ID: c.ID, Foreign: c.Foreign,
			Holder: c.Holder, Session: c.Session, Reason: c.Reason, Actor: c.Holder}
	case *core.Release:
		return Line{Verb: "release", Namespace: c.Namespace, ID: c.ID}
	case *core.Change:
		l := Line{Verb: "change", Namespace: c.Namespace, ID: c.ID, Foreign: c.Foreign, Holder: c.Holder}
		if c.About != nil {
			l.Holder, l.Reason = c.About.Holder, c.About.Reason
		}
		return l
	case *core.Break:
		return Line{Verb: "break", Namespace: c.Namespace, Resource: c.Resource, ID: c.ID, Token: c.Token,
			Reason: c.Reason, By: c.By, Actor: c.By}
	case *core.Ask:
		return Line{Verb: "ask", Namespace: c.Namespace, Resource: c.Resource, Reason: c.Message, By: c.By, Actor: c.By}
	case *core.Move:
		return Line{Verb: "move", Namespace: c.Namespace, ID: c.ID, Reason: c.Reason, By: c.By, Actor: c.By}
	case *core.OpenSession:
		return Line{Verb: "open-session", Namespace: c.Namespace, Session: c.ID}
	case *core.CloseSession:
		if c.Abandon {
			return Line{Verb: "abandon-session", Namespace: c.Namespace, Session: c.ID}
		}
		return Line{Verb: "close-session", Namespace: c.Namespace, Session: c.ID}
	case *core.PutRecord:
		return describePut(c)
	case *core.DeleteRecord:
		return Line{Verb: "delete-record", Namespace: c.Namespace, Resource: c.Path, ID: c.Fence.Lease,
			Token: c.Fence.Token}
	case *core.Define:
		return byHand("define", c.Namespace, c.Definition.Path, c.Reason, c.By)
	case *core.Undefine:
		return byHand("undefine", c.Namespace, c.Path, c.Reason, c.By)
	case *core.SetUnits:
		return byHand("set-units", c.Namespace, c.Resource, c.Reason, c.By)
	case *core.Drain:
		return byHand("drain", c.Namespace, c.Resource, c.Why, c.By)
	case *core.Acknowledge:
		line := byHand("acknowledge", c.Namespace, c.Resource, c.Reason, c.By)
		line.Token = c.Token
		return line
	case *core.AcknowledgeAlarm:
		return Line{Verb: "acknowledge-alarm", Namespace: c.Namespace, Resource: c.Resource, ID: c.ID,
			Session: c.Session, Reason: strings.TrimSuffix(c.Kind.String()+": "+c.Reason, ": "), By: c.By, Actor: c.By}
	case *core.SetCaps:
		// What is about the whole cluster stands in the default namespace, where people look.
		return byHand("set-limits", leasehold.DefaultNamespace, "", capsText(c), c.By)
	case *core.EndQuarantine:
		return byHand("end-quarantine", leasehold.DefaultNamespace, "", c.Reason, c.By)
	case *core.RaiseTokens:
		return Line{Verb: "raise-tokens", Namespace: c.Namespace, Token: c.Above, Reason: c.Reason, By: c.By,
			Actor: c.By}
	case *core.ChangeAccess:
		return Line{Verb: "change-access", Namespace: leasehold.DefaultNamespace, Reason: accessText(c), By: c.By,
			Actor: c.By}
	case *core.Txn:
		return Line{Verb: "txn", Namespace: c.Namespace}
	case *core.Renew, *core.RenewSession, *core.ReportUse, *core.Tick, *core.Lead:
		return Line{} // what they set off is told by its events
	}
	return describeTask(c)
}

// describeTask describes what is done to tasks.
func describeTask(c core.Command) Line {
	switch c := c.(type) {
	case *core.PutTask:
		return byHand("put-task", c.Namespace, c.Path, "", c.By)
	case *core.FinishTask:
		return describeFinish(c)
	}
	return describeReservation(c)
}

func describePut(c *core.PutRecord) Line {
	l := Line{Verb: "put-record", Namespace: c.Namespace, Resource: c.Path, Session: c.Session, ID: c.Fence.Lease,
		Token: c.Fence.Token, By: c.By, Reason: c.Reason}
	if c.Link != nil {
		l.ID, l.Foreign, l.Holder, l.Actor = c.Link.ID, c.Link.Foreign, c.Link.Holder, c.Link.Holder
	}
	return l
}

func describeFinish(c *core.FinishTask) Line {
	l := Line{Verb: "finish-task", Namespace: c.Namespace, ID: c.ID, Token: c.Token,
		Reason: leasehold.TaskDone.String()}
	if c.Failed {
		l.Reason = strings.TrimSuffix(leasehold.TaskFailed.String()+": "+brief(c.Result), ": ")
	}
	return l
}

// accessText says what a change of access is about, by names alone, and why.
func accessText(c *core.ChangeAccess) string {
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
	text := brief(strings.Join(parts, "; "))
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

// byHand is the line of what an operator, or who acts for one, does to a resource.
func byHand(verb, namespace, resource, reason, by string) Line {
	return Line{Verb: verb, Namespace: namespace, Resource: resource, Reason: reason, By: by, Actor: by}
}
