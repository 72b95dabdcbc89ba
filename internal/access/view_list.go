package access

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
)

// Lists look only at the parts of a namespace in which the asker may see something, so a page costs the same however
// much is hidden beside them. Within a part there is something hidden only if the asker may see its own alone: a page
// then passes over others', as much as the core lets one read do, and may be short, or empty, and still have a next
// one. Where it goes on is sealed if it is at a name that the asker may not see.

// maxParts is how many parts one page looks at. The next page goes on after them.
const maxParts = 1000

// List: as Find.
func (v *view) List(namespace, prefix, after string, most int, all bool) (list []leasehold.Status, next string) {
	return v.Find(namespace, core.ListQuery{Prefix: prefix, After: after, Most: most, All: all})
}

// Find: list and read. Who may do so to its own only sees its own leases.
func (v *view) Find(namespace string, q core.ListQuery) (list []leasehold.Status, next string) {
	q.After = v.open(q.After)
	parts, end := v.parts(policy.List, namespace, q.Prefix, q.After)
	for _, part := range parts {
		page := q
		page.Prefix = part.Path
		if part.Exact {
			page.To = part.End()
		}
		for {
			page.Most = q.Most - len(list)
			found, at := v.in.Find(namespace, page)
			for _, status := range found {
				if status, seen := v.seesStatus(status); seen {
					list = append(list, status)
				}
			}
			if at != "" && (len(list) == q.Most || len(found) < page.Most) {
				return list, v.seal(at, v.permit.May(policy.List, namespace, at, nil))
			}
			if at == "" {
				break
			}
			page.After = at
		}
		if len(list) == q.Most {
			return list, list[len(list)-1].Resource
		}
	}
	return list, end
}

// seesStatus returns as much of a listed resource as the asker may see, and reports whether that is anything.
func (v *view) seesStatus(s leasehold.Status) (leasehold.Status, bool) {
	switch {
	case v.lists(s.Namespace, s.Resource, nil):
		return s, true
	case v.lists(s.Namespace, s.Resource, v.self()):
		return v.ownPart(s)
	}
	return leasehold.Status{}, false
}

// lists reports whether the asker may see what is at a path in a list.
func (v *view) lists(namespace, path string, owner *policy.Owner) bool {
	return v.permit.May(policy.List, namespace, path, owner) && v.permit.May(policy.Read, namespace, path, owner)
}

// parts returns where a list looks that goes on after a path, and the path after which the next page goes on if that is
// not all; empty: it is. A list of what the asker may see nothing of is denied.
func (v *view) parts(verb policy.Verb, namespace, prefix, after string) (parts []policy.Part, next string) {
	all := v.permit.Parts(verb, namespace, prefix)
	if len(all) == 0 {
		v.deny(verb, namespace, prefix)
		return nil, ""
	}
	v.shown = true
	for i, part := range all {
		if end := part.End(); end != "" && end <= after {
			continue
		}
		if len(parts) == maxParts {
			return parts, all[i-1].End()
		}
		parts = append(parts, part)
	}
	return parts, ""
}

// Definitions: list and read.
func (v *view) Definitions(namespace, prefix, after string, most int) (list []leasehold.Definition, next string) {
	parts, end := v.parts(policy.List, namespace, prefix, after)
	for _, part := range parts {
		for _, d := range v.definitionsIn(namespace, part, after, most+1-len(list)) {
			if len(list) == most {
				return list, list[most-1].Path
			}
			// It has no owner: who may see its own only sees what applies to it by asking for that.
			if v.lists(namespace, d.Path, nil) {
				list = append(list, d)
			}
		}
	}
	return list, end
}

func (v *view) definitionsIn(namespace string, part policy.Part, after string, most int) []leasehold.Definition {
	if !part.Exact {
		list, _ := v.in.Definitions(namespace, part.Path, after, most)
		return list
	}
	if d, some := v.in.Definition(namespace, part.Path); some && d.Path == part.Path && part.Path > after {
		return []leasehold.Definition{d}
	}
	return nil
}

// maxPoolWork is how much work one page of pools does before the next page goes on: to count the units of a pool takes
// work, and each part has one at least.
const maxPoolWork = 4096

// Pools: list and read, on all of each. There is no part of a pool that is somebody's own.
func (v *view) Pools(namespace, prefix, after string, most int) (list []leasehold.PoolStatus, next string) {
	after = v.open(after)
	parts, end := v.parts(policy.List, namespace, prefix, after)
	for _, part := range parts {
		if len(list) > 0 && (len(list) == most || v.in.Work() >= maxPoolWork) {
			return list, list[len(list)-1].Resource
		}
		wanted := most - len(list)
		if part.Exact {
			wanted = 1
		}
		found, at := v.in.Pools(namespace, part.Path, after, wanted)
		for _, p := range found {
			if (!part.Exact || p.Resource == part.Path) && v.lists(namespace, p.Resource, nil) {
				list = append(list, p)
			}
		}
		if at != "" && !part.Exact {
			return list, v.seal(at, v.lists(namespace, at, nil))
		}
	}
	return list, end
}

// Sessions: list, one's own or all in the namespace.
func (v *view) Sessions(namespace, prefix, after string, most int) (list []leasehold.Session, next string) {
	if !v.permit.MaySomewhere(policy.List, namespace) {
		v.deny(policy.List, namespace, "")
		return nil, ""
	}
	v.shown = true
	if v.permit.MayAll(policy.List, namespace) {
		return v.in.Sessions(namespace, prefix, v.open(after), most)
	}
	after = v.open(after)
	for {
		asked := most - len(list)
		found, at := v.in.Sessions(namespace, prefix, after, asked)
		for _, s := range found {
			if v.permit.Owns(v.in.OwnerOfSession(namespace, s.ID)) {
				list = append(list, s)
			}
		}
		// A page that is short although more follows has done as much as one read may.
		if at == "" || len(list) == most || len(found) < asked {
			return list, v.seal(at, v.permit.Owns(v.in.OwnerOfSession(namespace, at)))
		}
		after = at
	}
}

// seesAlarm reports whether the asker may see an alarm: what it is about, a resource or a session.
func (v *view) seesAlarm(namespace string, a *leasehold.Alarm) bool {
	switch {
	case a.Resource == "" && a.Session != "":
		return v.permit.MayToOwn(policy.Read, namespace, v.in.OwnerOfSession(namespace, a.Session))
	case a.Resource == "":
		return true
	}
	return v.permit.May(policy.Read, namespace, a.Resource, v.in.OwnerOfClaim(namespace, a.ID))
}

// maxAlarms is how many alarms one page looks at.
const maxAlarms = 1000

// Alarms: read, of their resource. One that is about none, everybody sees who knows the namespace.
func (v *view) Alarms(namespace string, q core.AlarmQuery) (list []leasehold.Alarm, next uint64) {
	if !v.permit.MaySomewhere(policy.Read, namespace) {
		v.deny(policy.Read, namespace, q.Prefix)
		return nil, 0
	}
	v.shown = true
	list = v.endingTokens(namespace, q)
	if q.Kind == leasehold.TokenEnding {
		return list, 0 // the state has none
	}
	most := q.Most
	for looked := 0; ; {
		q.Most = most - len(list)
		found, at := v.in.Alarms(namespace, q)
		for _, a := range found {
			if v.seesAlarm(namespace, &a) {
				list = append(list, a)
			}
		}
		looked += len(found)
		if at == 0 || len(list) == most || looked >= maxAlarms {
			return list, at
		}
		q.Before = at
	}
}
