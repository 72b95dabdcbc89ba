package translate

import (
	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/door"
)

// SetUnits says which units of a pool a host has.
func (c Command) SetUnits(r *pools.UnitsRequest) (*core.SetUnits, error) {
	command := &core.SetUnits{Namespace: c.Namespace, Resource: c.Path, Host: r.Host, By: r.By,
		Reason: r.Reason, Request: c.Once}
	err := door.First(Path("resource", command.Resource), Text("host", r.Host), Text("by", r.By),
		Text("reason", r.Reason))
	for _, u := range r.Units {
		ls, wrong := Labels(u.Labels)
		if err = door.First(err, wrong, Name("unit", u.Name), Text("unfit", u.Unfit)); err != nil {
			return nil, err
		}
		command.Units = append(command.Units, core.HostUnit{Name: u.Name, Labels: ls, Unfit: u.Unfit})
	}
	return command, door.First(err)
}

// Drain keeps units from being granted, or lets them be granted again.
func (c Command) Drain(r *pools.DrainRequest) (*core.Drain, error) {
	command := &core.Drain{Namespace: c.Namespace, Resource: c.Path, Units: r.Units, Why: r.Why, By: r.By,
		Request: c.Once}
	return command, door.First(Path("resource", command.Resource), Text("why", r.Why), Text("by", r.By))
}

// ReportUse says how the units of a host are used.
func (c Command) ReportUse(r *pools.UseRequest) (*core.ReportUse, error) {
	command := &core.ReportUse{Namespace: c.Namespace, Resource: c.Path, Host: r.Host, By: r.By,
		Request: c.Once}
	err := door.First(Path("resource", command.Resource), Text("host", r.Host), Text("by", r.By))
	for _, u := range r.Units {
		unit := core.UnitReport{Name: u.Name, Percent: pool.UnknownPercent, Memory: u.Memory, Unfit: u.Unfit}
		if u.Percent != nil {
			unit.Percent = *u.Percent
		}
		err = door.First(err, Name("unit", u.Name), Text("unfit", u.Unfit))
		for _, p := range u.Processes {
			err = door.First(err, Text("user", p.User), Text("process", p.Name))
			unit.Processes = append(unit.Processes, core.UnitProcess(p))
		}
		command.Units = append(command.Units, unit)
	}
	return command, door.First(err)
}
