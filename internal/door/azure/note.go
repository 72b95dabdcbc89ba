package azure

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/engine"
)

// note puts a refusal in the journal that the door decided. Most are of this kind: the door
// reads before it asks the engine to do something.
func (c *call) note(err error, f *fault) {
	if c.op == nil {
		return // it never came to be about anything
	}
	refusal := &leasehold.Error{Code: codeOf(f), Message: f.Error()}
	var cause *leasehold.Error
	if errors.As(err, &cause) {
		refusal = cause
	}
	verb := c.noted()
	if !c.engine.Unnoted(refusal) {
		return
	}
	// Reads and renewals are kept only if they were made without right.
	if refusal.Code != leasehold.Denied && (c.op.method == http.MethodGet || verb == renewal) {
		return
	}
	c.refused(verb, refusal.Code, f.Error())
}

// refused notes one refusal.
func (c *call) refused(verb string, code leasehold.Code, reason string) {
	origin, err := engine.OriginOf(c.ctx)
	if err != nil {
		origin = leasehold.Origin{Door: "azure"} // a name that is too long was not proven either
	}
	r := audit.Refusal{
		Origin: origin, Namespace: c.door.config.Namespace, Verb: verb, Outcome: code.String(), Reason: reason,
		ID: cmp.Or(c.r.Header.Get("X-Ms-Lease-Id"), c.r.Header.Get("X-Ms-Proposed-Lease-Id")), InTheWay: c.inTheWay,
	}
	if r.ID = cut(r.ID, 64); c.at.Container != "" {
		r.Resource = c.at.Resource()
	}
	c.door.backend.Refused(r)
}

const renewal = "renew"

// noted is what the journal calls the request.
func (c *call) noted() string {
	if c.op.comp != "lease" {
		return c.op.noted
	}
	switch action := strings.ToLower(c.r.Header.Get("X-Ms-Lease-Action")); action {
	case "acquire", renewal, "change", "release", "break":
		return action
	}
	return c.op.noted
}
