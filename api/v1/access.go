package v1

// Access is who may do what, as one document: what GET /v1/access returns, and what POST /v1/access/apply makes so.
// It has no secrets.
type Access struct {
	Revision     uint64              `json:"revision,omitempty"` // how often it was changed; ignored by apply
	Roles        []AccessRole        `json:"roles,omitempty"`
	Bindings     []AccessBinding     `json:"bindings,omitempty"`
	Quotas       []AccessQuota       `json:"quotas,omitempty"`
	Issuers      []AccessIssuer      `json:"issuers,omitempty"`
	Certificates []AccessCertificate `json:"certificates,omitempty"`

	// Tokens are never removed by what is applied: revoke them.
	Tokens []AccessToken `json:"tokens,omitempty"`
}

// An AccessToken is a credential of Leasehold's own, without its secret.
type AccessToken struct {
	ID          string   `json:"id"`
	Principal   string   `json:"principal"`
	Groups      []string `json:"groups,omitempty"`
	Description string   `json:"description,omitempty"`
	Created     *Time    `json:"created,omitempty"`
	CreatedBy   string   `json:"created_by,omitempty"`
	Expires     *Time    `json:"expires,omitempty"` // missing: never
	Used        *Time    `json:"used,omitempty"`    // about when it was used last

	// Hash is the SHA-256 of the secret in hex. It is sent, and never returned.
	Hash string `json:"hash,omitempty"`
}

// A TokenRequest makes a token.
type TokenRequest struct {
	Principal   string   `json:"principal"`
	Groups      []string `json:"groups,omitempty"`
	Description string   `json:"description,omitempty"`
	TTL         Duration `json:"ttl,omitzero"` // missing: it never ends

	// ID names the token; empty: the server makes one. With the same id and hash the request is idempotent.
	ID string `json:"id,omitempty"`

	// Hash is the SHA-256, in hex, of a secret that the caller made; empty: the server makes the secret.
	Hash string `json:"hash,omitempty"`

	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// A NewToken is a token that was made.
type NewToken struct {
	Token AccessToken `json:"token"`

	// Secret is what requests carry. It is returned once, by the server that made it; missing if the caller made it, or
	// if the request was a repetition: the secret is then lost, and the token should be revoked.
	Secret string `json:"secret,omitempty"`
}

// An AccessRole is a set of verbs.
type AccessRole struct {
	Name string `json:"name"`

	// Verbs are such as "break", to anything where the role is bound, or "break:own", to one's own only.
	Verbs []string `json:"verbs"`

	// OnRevoke says what becomes of the leases of those who lose the role: "keep" (the default), until they end by
	// themselves, or "end".
	OnRevoke string `json:"on_revoke,omitempty"`

	Ready bool `json:"ready,omitempty"` // it is always there, and cannot be changed
}

// An AccessBinding gives a role to a principal or a group.
type AccessBinding struct {
	Name      string `json:"name,omitempty"` // empty: made of the rest
	Role      string `json:"role"`
	Principal string `json:"principal,omitempty"` // or
	Group     string `json:"group,omitempty"`
	Namespace string `json:"namespace,omitempty"` // empty: default; "*": all, and the cluster itself
	Prefix    string `json:"prefix,omitempty"`    // "a": a and all below it; "a/": what is below; empty: everything
	Holders   string `json:"holders,omitempty"`   // as prefix, of the names of holders that may be given; empty: any
}

// An AccessQuota is how much a principal, or a namespace, may have. 0: no limit.
type AccessQuota struct {
	Principal string `json:"principal,omitempty"` // "*": each that has no quota of its own; or
	Namespace string `json:"namespace,omitempty"`
	Leases    int64  `json:"leases,omitempty"`
	Sessions  int64  `json:"sessions,omitempty"`
	Waiters   int64  `json:"waiters,omitempty"`
	Records   int64  `json:"records,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`    // of the values of records
	Watches   int64  `json:"watches,omitempty"`  // at each server
	Requests  int64  `json:"requests,omitempty"` // a second, at each server
	Renewals  int64  `json:"renewals,omitempty"` // renewals and releases a second, at each server

	Used *QuotaUse `json:"used,omitempty"` // in lists; nil: of the principal *, which stands for many
}

// A QuotaUse is how much there is of what a quota limits. Those who wait count as leases too.
type QuotaUse struct {
	Leases   int64 `json:"leases"`
	Sessions int64 `json:"sessions"`
	Waiters  int64 `json:"waiters"`
	Records  int64 `json:"records"`
	Bytes    int64 `json:"bytes"`
}

// An AccessIssuer is somebody whose JWTs prove who asks.
type AccessIssuer struct {
	Name      string      `json:"name"` // begins the names of its principals: NAME:SUBJECT
	URL       string      `json:"url"`  // as in the claim iss
	Audiences []string    `json:"audiences"`
	Keys      string      `json:"keys,omitempty"`      // a JWKS; empty: discovered at the URL
	Principal string      `json:"principal,omitempty"` // the claim that names the principal; empty: sub
	Groups    []ClaimRule `json:"groups,omitempty"`
}

// A ClaimRule puts those whose claim has a value into a group.
type ClaimRule struct {
	Claim string `json:"claim"`
	Value string `json:"value"` // * stands for any text
	Group string `json:"group"`
}

// An AccessCertificate maps client certificates to a principal.
type AccessCertificate struct {
	Name      string   `json:"name"`
	SAN       string   `json:"san"`                 // dns:NAME, uri:NAME or email:NAME; * stands for any text
	Principal string   `json:"principal,omitempty"` // empty: cert: and the name that matched
	Groups    []string `json:"groups,omitempty"`
}

// An ApplyAccessRequest makes access as a document says: what it does not have is removed, except tokens.
type ApplyAccessRequest struct {
	Access Access `json:"access"`

	// DryRun changes nothing: the answer says what would change.
	DryRun bool `json:"dry_run,omitempty"`

	// IfRevision refuses the request unless access is at this revision, as a dry run said it; 0: whatever it is at.
	IfRevision uint64 `json:"if_revision,omitempty"`

	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// AppliedAccess is what was changed, or would be.
type AppliedAccess struct {
	Revision uint64         `json:"revision"` // at which access is now
	Applied  bool           `json:"applied"`  // false: it was a dry run
	Changes  []AccessChange `json:"changes"`
}

// An AccessChange is one difference. From and To are for people.
type AccessChange struct {
	Kind   string `json:"kind"`   // role, binding, quota, issuer, certificate or token
	Name   string `json:"name"`   // within the kind
	Action string `json:"action"` // add, change or remove
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
}

// A CanIQuery asks whether somebody may do something.
type CanIQuery struct {
	Verb   string
	Path   string   // empty: to everything in the namespace
	ID     string   // of a lease or waiter at Path; empty: of any
	As     string   // empty: who asks
	Groups []string // of As
}

// CanI says whether somebody may do something, and why.
type CanI struct {
	Allowed   bool           `json:"allowed"`
	Own       bool           `json:"own,omitempty"` // only to what is its own
	Enabled   bool           `json:"enabled"`       // false: access is off, and everybody may do everything
	Principal string         `json:"principal,omitempty"`
	Groups    []string       `json:"groups,omitempty"`
	Verb      string         `json:"verb"`
	Namespace string         `json:"namespace"`
	Path      string         `json:"path,omitempty"`
	ID        string         `json:"id,omitempty"`
	Because   []AccessReason `json:"because"` // none: no binding allows it
}

// WhoCan says who may do something, and why.
type WhoCan struct {
	Enabled   bool           `json:"enabled"` // false: access is off, and everybody may do everything
	Verb      string         `json:"verb"`
	Namespace string         `json:"namespace"`
	Path      string         `json:"path,omitempty"`
	Because   []AccessReason `json:"because"`
}

// An AccessReason is a binding that allows something.
type AccessReason struct {
	Binding   string `json:"binding"`
	Role      string `json:"role"`
	Principal string `json:"principal,omitempty"` // whom it allows it, or
	Group     string `json:"group,omitempty"`
	Namespace string `json:"namespace"`
	Prefix    string `json:"prefix,omitempty"`
	Holders   string `json:"holders,omitempty"`
	Own       bool   `json:"own,omitempty"` // only to what is its own
}

// Whoami says who was proven to ask.
type Whoami struct {
	Enabled   bool     `json:"enabled"` // false: access is off, and everybody may do everything
	Principal string   `json:"principal,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	Token     string   `json:"token,omitempty"` // the id of the token; missing: something else proved it

	Credential string          `json:"credential,omitempty"` // what proved it: token, jwt, certificate or azure
	Expires    *Time           `json:"expires,omitempty"`
	Bindings   []AccessBinding `json:"bindings"` // those that say what it may do
}

// Verbs are what can be done. Those of OwnVerbs can be limited to one's own, as in "break:own".
var (
	Verbs = []string{"read", "list", "watch", "acquire", "share", "renew", "release", "ask", "break", "change", "move",
		"acknowledge", "define", "record-read", "record-write", "foreign", "audit", "monitor", "admin"}
	OwnVerbs = []string{"read", "list", "watch", "renew", "release", "ask", "break", "change", "move", "record-read",
		"record-write"}
)
