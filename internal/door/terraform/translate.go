package terraform

import (
	"net/url"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// A place is what a path names.
type place struct {
	state string
	lock  bool // the path is that of its lock
	azure bool // it is a state of the azurerm backend
}

// placeOf reads a path in any of the dialects.
//
//	/terraform/STATE[/lock]                                  ours
//	/terraform/state?state=STATE, /terraform/lock?state=…    as terraform-backend-etcd has it
//	/api/v4/projects/PROJECT/terraform/state/NAME[/lock]     GitLab
//	/api/packages/OWNER/terraform/state/NAME[/lock]          Gitea
func placeOf(escaped string, query door.Query) (at place, err error) {
	segments, err := unescape(escaped)
	if err != nil {
		return at, err
	}
	switch {
	case segments[0] == "azurerm":
		return azurePlace(segments[1:])
	case len(segments) >= 7 && segments[0] == "api" && segments[1] == "v4":
		segments = append([]string{segments[3]}, segments[6:]...)
	case len(segments) >= 6 && segments[0] == "api" && segments[1] == "packages":
		segments = append([]string{segments[2]}, segments[5:]...)
	case segments[0] == "api":
		return at, nil // and no name of a state
	default:
		segments = segments[1:]
	}
	if query.Has("state") {
		if len(segments) != 1 || segments[0] != "state" && segments[0] != "lock" {
			return at, door.Invalid("the state is named by the path and by the query: " +
				"use /terraform/STATE, or /terraform/state?state=STATE")
		}
		name := strings.Trim(query.Get("state"), "/")
		return checked(place{state: name, lock: segments[0] == "lock"})
	}
	if last := len(segments) - 1; last >= 1 && segments[last] == "lock" {
		at.lock, segments = true, segments[:last]
	}
	if at.state = strings.Join(segments, "/"); at.state == "" {
		return at, nil
	}
	return checked(at)
}

// checked refuses the name of a state that cannot be one of the http backend.
func checked(at place) (place, error) {
	if tfstate.OfAzure(at.state) {
		return at, door.Invalid("a name that begins with %s means a state of the azurerm backend: choose another",
			tfstate.AzureMark)
	}
	return at, tfstate.CheckState(at.state)
}

// azurePlace reads the path of a state of the azurerm backend: /azurerm/ACCOUNT/CONTAINER/KEY.
func azurePlace(segments []string) (at place, err error) {
	at.azure = true
	if blob := strings.Join(segments, "/"); blob != "" {
		at.state = tfstate.AzureMark + blob
		err = tfstate.CheckState(at.state)
	}
	return at, err
}

// unescape splits a path, which the server has found to be tidy.
func unescape(escaped string) (segments []string, err error) {
	for part := range strings.SplitSeq(strings.Trim(escaped, "/"), "/") {
		segment, err := url.PathUnescape(part)
		if err != nil {
			return nil, door.Invalid("the path cannot be read: %v", err)
		}
		segments = append(segments, segment)
	}
	return segments, nil
}

// params are what a query may have. All of them are allowed with any method: Terraform is given
// one address, and uses it for all.
var params = []string{
	"ID", "namespace", "state", "wait", "session", "ttl", "lease_ttl", "force", "allow-lineage",
	"version", "versions", "info", "prefix", "after", "limit",
}

// toAcquire returns the command that takes a lock. The lease lasts, in this order: as long as
// the session that the query names; the TTL that it names; what is defined for the state;
// until it is given back.
func (c *call) toAcquire(info *tfstate.LockInfo, verbatim []byte, d leasehold.Definition) (*core.Acquire, error) {
	wait, badWait := c.query.Duration("wait", leasehold.MaxWait)
	ttl, badTTL := c.query.Duration("ttl", leasehold.MaxTTL)
	lease, badLease := c.query.Duration("lease_ttl", leasehold.MaxTTL)
	if err := door.First(badWait, badTTL, badLease); err != nil {
		return nil, err
	}
	command := &core.Acquire{
		Namespace: c.namespace, Resource: c.path,
		Holder: info.Holder(), Reason: info.Reason(), Labels: labelsOf(info, verbatim),
		Session: c.query.Get("session"), Wait: wait, TTL: max(ttl, lease),
	}
	if command.Session == "" && command.TTL == 0 {
		if command.TTL = d.DefaultTTL; command.TTL == 0 {
			command.TTL = d.LargestTTL
		}
	}
	command.ID = info.ID
	return command, nil
}
