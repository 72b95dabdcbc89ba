package command

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// ReportUse says how the units of one host are used. A unit that the host has in the pool and that the report leaves
// out is not granted until the host reports it again.
//
// It changes nothing that people have to know of while units stay what they are, and makes no revision then.
type ReportUse struct {
	Namespace string
	Resource  string
	Host      string
	Units     []UnitReport
	By        string
	Request   Request
}

// A UnitReport is the use of one unit as its host sees it.
type UnitReport struct {
	Name      string
	Percent   int // 0 to 100; pool.UnknownPercent: the host cannot tell
	Memory    int // that is taken, in MiB
	Processes []UnitProcess
	Unfit     string // why it is not to be granted; empty: it may be
}

// A UnitProcess is a process that uses a unit. Lease is the id of the lease that it says it runs under; empty: it says
// nothing. Of several processes of one lease one is enough.
type UnitProcess struct {
	PID   int
	User  string
	Name  string
	Lease string
}

func (c *ReportUse) space() string    { return c.Namespace }
func (c *ReportUse) request() Request { return c.Request }
func (c *ReportUse) subject() string  { return "report use " + c.Resource }

func (c *ReportUse) Validate() error {
	err := firstError(name("namespace", c.Namespace), name("resource", c.Resource), text("host", c.Host),
		text("by", c.By), c.Request.validate())
	if err == nil && len(c.Units) > leasehold.MaxHostUnits {
		err = invalid("there are %d units: one host has at most %d", len(c.Units), leasehold.MaxHostUnits)
	}
	var seen btree.Set[string]
	processes := 0
	for i := range c.Units {
		if err != nil {
			return err
		}
		u := &c.Units[i]
		if err = u.validate(); err == nil && seen.Contains(u.Name) {
			err = invalid("unit %q is named twice", u.Name)
		}
		seen.Insert(u.Name)
		processes += len(u.Processes)
	}
	if err == nil && processes > leasehold.MaxHostProcesses {
		err = invalid("there are %d processes: a report names at most %d", processes, leasehold.MaxHostProcesses)
	}
	return err
}

func (u *UnitReport) validate() error {
	switch {
	case u.Percent < pool.UnknownPercent || u.Percent > 100:
		return invalid("unit %q is used by %d percent: 0 to 100 are allowed, or %d if that is not known", u.Name,
			u.Percent, pool.UnknownPercent)
	case u.Memory < 0:
		return invalid("unit %q has %d MiB of memory taken: 0 or more are allowed", u.Name, u.Memory)
	case len(u.Processes) > leasehold.MaxUnitProcesses:
		return invalid("unit %q has %d processes: a report names at most %d", u.Name, len(u.Processes),
			leasehold.MaxUnitProcesses)
	}
	for _, p := range u.Processes {
		switch {
		case p.PID < 1:
			return invalid("process %d of unit %q is none: numbers begin with 1", p.PID, u.Name)
		case len(p.User) > leasehold.MaxProcessText || len(p.Name) > leasehold.MaxProcessText:
			return invalid("the name of process %d of unit %q, or of its user, is too long: at most %d bytes are "+
				"allowed", p.PID, u.Name, leasehold.MaxProcessText)
		}
		if err := text("lease", p.Lease); err != nil {
			return err
		}
	}
	return firstError(name("unit", u.Name), text("unfit", u.Unfit))
}
