package tui

import (
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/lease"
)

// What a key does depends on what is open. Only ctrl+c means the same everywhere, so that a person
// can always leave.

// key takes one key, according to what is open.
func (b *board) key(k keyMsg) any {
	if k.name == "ctrl+c" {
		b.done = func() error { return cli.SignalError(syscall.SIGINT) }
		return nil
	}
	switch b.mode {
	case modeFilter:
		b.filterKey(k)
	case modeHelp:
		b.back() // any key
	case modeDetails:
		return b.detailsKey(k)
	case modeWhom:
		b.whomKey(k)
	case modeReason:
		b.reasonKey(k)
	case modeConfirm:
		return b.confirmKey(k)
	default:
		return b.listKey(k)
	}
	return nil
}

// listKey does what a key means in the list.
func (b *board) listKey(k keyMsg) any {
	switch k.name {
	case "up", "k":
		b.move(-1)
	case "down", "j":
		b.move(1)
	case "pgup", "ctrl+b":
		b.move(-b.room())
	case "pgdown", "ctrl+f", "space":
		b.move(b.room())
	case "home", "g":
		b.move(-len(b.rows))
	case "end", "G":
		b.move(len(b.rows))
	case "/":
		b.mode, b.typing = modeFilter, b.filter
	case "esc":
		b.filter = ""
		b.arrange()
	case "s":
		b.order = (b.order + 1) % orders
		b.arrange()
		b.move(-len(b.rows)) // who sorts wants to see what comes first
	case "enter":
		if r, ok := b.current(); ok {
			b.mode, b.Details = modeDetails, &detailsView{name: r.Resource}
			return wantLook{name: r.Resource}
		}
	case "b":
		if r, ok := b.current(); ok {
			return wantLook{name: r.Resource, toBreak: true}
		}
	case "?", "h":
		b.mode = modeHelp
	case "q":
		b.done = func() error { return nil }
	}
	return nil
}

func (b *board) filterKey(k keyMsg) {
	switch k.name {
	case "enter":
		b.mode = modeList
	case "esc":
		b.mode, b.filter = modeList, b.typing
	default:
		b.filter = typed(b.filter, k)
	}
	b.arrange()
}

func (b *board) detailsKey(k keyMsg) any {
	switch k.name {
	case "up", "k":
		b.Details.first = max(0, b.Details.first-1)
	case "down", "j":
		b.Details.first++ // drawing knows where the end is
	case "pgup":
		b.Details.first = max(0, b.Details.first-b.height/2)
	case "pgdown", "space":
		b.Details.first += b.height / 2
	case "b":
		return wantLook{name: b.Details.name, toBreak: true}
	case "?", "h":
		b.mode = modeHelp
	case "esc", "enter", "q", "backspace", "left":
		b.mode, b.Details = modeList, nil
	}
	return nil
}

// whomKey chooses whose lease to break, where several share a resource. Behind the last holder
// comes a line for all of them, so that nobody ends everything by pressing enter twice.
func (b *board) whomKey(k keyMsg) {
	s := b.breaking
	switch k.name {
	case "up", "k":
		s.cursor = max(0, s.cursor-1)
	case "down", "j":
		s.cursor = min(s.cursor+1, len(s.resource.Holders))
	case "home", "g":
		s.cursor = 0
	case "end", "G":
		s.cursor = len(s.resource.Holders)
	case "enter":
		if s.leases = s.resource.Holders; s.cursor < len(s.leases) {
			s.leases = s.leases[s.cursor : s.cursor+1]
		}
		b.mode = modeReason
	case "esc", "q":
		b.giveUp()
	}
}

// reasonKey types the reason of a break. A break without one is refused, as on the command
// line.
func (b *board) reasonKey(k keyMsg) {
	switch k.name {
	case "esc":
		b.giveUp()
	case "tab":
		b.breaking.atOnce = !b.breaking.atOnce
	case "enter":
		if strings.TrimSpace(b.breaking.reason) == "" {
			b.say("  (needed: the holder will want to know)")
			return
		}
		b.mode = modeConfirm
	default:
		b.breaking.reason, b.note = typed(b.breaking.reason, k), ""
	}
}

// confirmKey takes y alone for a yes. The requests name the leases that were shown, so that a holder
// who was granted the resource since then is not hit.
func (b *board) confirmKey(k keyMsg) any {
	s := b.breaking
	switch {
	case s.sent:
		return nil // the answer is on its way
	case k.name != "y":
		b.giveUp()
		return nil
	}
	s.sent = true
	f := lease.BreakFlags{Now: s.atOnce, Reason: strings.TrimSpace(s.reason)}
	return wantBreak{f.Requests("", s.losers())}
}

// giveUp leaves the dialogue, and says that nothing happened.
func (b *board) giveUp() {
	b.breaking = nil
	b.back()
	b.say("nothing was done")
}

// typed returns a line after one more key.
func typed(line string, k keyMsg) string {
	switch k.name {
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(line)
		return line[:len(line)-size]
	case "ctrl+u":
		return ""
	}
	return line + k.text
}
