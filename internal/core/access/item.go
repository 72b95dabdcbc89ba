package access

// A Token is a credential of ours. Its secret is not kept, only the hash.
type Token struct {
	ID          string // names it in lists; no secret
	Hash        string // the SHA-256 of the secret, 32 bytes
	Principal   string
	Groups      []string
	Description string
	CreatedWall int64  // Unix nanoseconds
	CreatedBy   string // the principal that made it
	ExpiresWall int64  // Unix nanoseconds, judged by the door's clock; 0: never
	UsedWall    int64  // about when it was last used; 0: never
}

// A Role is a set of verbs, each for anything or for one's own only.
type Role struct {
	Name string
	Any  Verbs
	Own  Verbs

	// EndOnRevoke ends the leases of those who lose the role. Without it they last until their TTL ends,
	// which nobody can renew.
	EndOnRevoke bool
}

// A Binding gives a role to somebody, for a part of what there is.
type Binding struct {
	Name      string
	Role      string
	Principal string // or
	Group     string
	Namespace string // AllNamespaces: every one, and what belongs to none, such as the cluster
	Prefix    string // of paths: "a" covers a and all below it, "a/" what is below, "" everything
	Holders   string // as Prefix, of the names of holders that may be given; "": any
}

// AllNamespaces as the namespace of a binding.
const AllNamespaces = "*"

// A Quota is how much a principal or a namespace may have; 0: no limit.
type Quota struct {
	Principal string // Everybody: each principal that has no quota of its own
	Namespace string // instead of Principal

	Leases, Sessions, Waiters, Records, Bytes int64 // counted in the log
	Watches                                   int64 // at each server
	Requests                                  int64 // a second, at each server
	Renewals                                  int64 // renewals and releases a second, at each server
}

// Everybody as the principal of a quota.
const Everybody = "*"

// Key names a quota.
func (q *Quota) Key() string {
	if q.Namespace != "" {
		return "n" + q.Namespace
	}
	return "p" + q.Principal
}

// An Issuer is somebody whose JWTs are believed.
type Issuer struct {
	Name      string // begins the names of its principals: NAME:SUBJECT
	URL       string // as in the claim iss
	Audiences []string
	Keys      string // a JWKS; empty: discovered at the URL
	Principal string // the claim that names the principal; empty: sub
	Groups    []ClaimRule
}

// A ClaimRule puts those whose claim has a value into a group.
type ClaimRule struct {
	Claim string
	Value string // * stands for any text
	Group string
}

// A Certificate maps client certificates, signed by the CA that the server trusts, to a principal.
type Certificate struct {
	Name      string
	SAN       string // dns:…, uri:… or email:…; * stands for any text
	Principal string // empty: cert: and the name that matched
	Groups    []string
}
