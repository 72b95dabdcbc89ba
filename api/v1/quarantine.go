package v1

import "context"

// A Quarantine is the time after a restore in which nothing is granted: leases that the former
// cluster granted after the backup may still be held.
type Quarantine struct {
	Active      bool      `json:"active"`                 // false: leases are granted as always
	Remaining   *Duration `json:"remaining,omitempty"`    // until it ends by itself
	Ends        *Time     `json:"ends,omitempty"`         // when that is; missing before the first leader
	Backup      *Time     `json:"backup,omitempty"`       // when the backup was taken
	TokensAbove uint64    `json:"tokens_above,omitempty"` // every token after the restore is larger
}

// An EndQuarantineRequest ends a quarantine early.
type EndQuarantineRequest struct {
	// TokensAbove names the restore, as Quarantine shows it: the quarantine of another restore is not
	// ended. 0: whichever there is.
	TokensAbove uint64 `json:"tokens_above,omitempty"`
	By          string `json:"by,omitempty"`
	Reason      string `json:"reason"` // needed; it is kept in the audit
}

// Quarantine returns the quarantine that is under way, if there is one.
func (c *Caller) Quarantine(ctx context.Context) (Quarantine, error) {
	return send[Quarantine](ctx, c, request{method: "GET", path: "/v1/cluster/quarantine", global: true})
}

// EndQuarantine ends the quarantine now. If there is none it changes nothing.
func (c *Caller) EndQuarantine(ctx context.Context, r EndQuarantineRequest) (Quarantine, error) {
	return send[Quarantine](ctx, c, request{
		method: "POST", path: "/v1/cluster/quarantine/end", body: r, global: true, idempotent: true,
	})
}
