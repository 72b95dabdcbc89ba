package v1

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"

	"github.com/leasehold/leasehold"
)

// An Intent is who changes access, and why, for the audit.
type Intent struct{ By, Reason string }

func (i Intent) query() url.Values {
	query := url.Values{}
	setText(query, "by", i.By)
	setText(query, "reason", i.Reason)
	return query
}

// An AccessQuery says which items to list.
type AccessQuery struct {
	Prefix string // of names
	After  string // Next of the previous page
	Limit  int    // of one page; 0: the server's default
}

func (q AccessQuery) query() url.Values {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	return query
}

// NewSecret returns the secret of a token, and the hash that a TokenRequest takes: a caller that makes it itself can
// repeat the request, and the secret never leaves it.
func NewSecret() (secret, hash string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	secret = "lh_" + base64.RawURLEncoding.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(secret))
	return secret, hex.EncodeToString(sum[:])
}

// CreateToken makes a token. It is idempotent if the request has an id and a hash.
func (c *Caller) CreateToken(ctx context.Context, r TokenRequest, options ...Option) (NewToken, error) {
	return send[NewToken](ctx, c, request{method: "POST", path: "/v1/access/tokens", body: r, global: true,
		options: options, idempotent: r.ID != "" && r.Hash != ""})
}

// RevokeToken revokes a token: nobody can use it from then on.
func (c *Caller) RevokeToken(ctx context.Context, id string, i Intent) error {
	return c.deleteAccess(ctx, "tokens/"+escape(id), i)
}

// AccessTokens returns one page of the tokens.
func (c *Caller) AccessTokens(ctx context.Context, q AccessQuery) (List[AccessToken], error) {
	return listAccess[AccessToken](ctx, c, "tokens", q)
}

// PutRole makes a role, or replaces it.
func (c *Caller) PutRole(ctx context.Context, r AccessRole, i Intent) (AccessRole, error) {
	return putAccess(ctx, c, "roles/"+escape(r.Name), r, i)
}

// DeleteRole removes a role.
func (c *Caller) DeleteRole(ctx context.Context, name string, i Intent) error {
	return c.deleteAccess(ctx, "roles/"+escape(name), i)
}

// Roles returns one page of the roles, those that are always there included.
func (c *Caller) Roles(ctx context.Context, q AccessQuery) (List[AccessRole], error) {
	return listAccess[AccessRole](ctx, c, "roles", q)
}

// PutBinding makes a binding, or replaces it.
func (c *Caller) PutBinding(ctx context.Context, b AccessBinding, i Intent) (AccessBinding, error) {
	return putAccess(ctx, c, "bindings/"+escape(b.Key()), b, i)
}

// DeleteBinding removes a binding.
func (c *Caller) DeleteBinding(ctx context.Context, name string, i Intent) error {
	return c.deleteAccess(ctx, "bindings/"+escape(name), i)
}

// Bindings returns one page of the bindings.
func (c *Caller) Bindings(ctx context.Context, q AccessQuery) (List[AccessBinding], error) {
	return listAccess[AccessBinding](ctx, c, "bindings", q)
}

// Key returns the name of a binding: its own, or one that is made of the rest.
func (b AccessBinding) Key() string {
	if b.Name != "" {
		return b.Name
	}
	who, where := b.Principal, b.Namespace
	if b.Group != "" {
		who = "group=" + b.Group
	}
	if where == "" {
		where = "default"
	}
	if b.Prefix != "" {
		where += "/" + b.Prefix
	}
	return b.Role + ":" + who + "@" + where
}

// PutQuota sets the quota of a principal or of a namespace.
func (c *Caller) PutQuota(ctx context.Context, q AccessQuota, i Intent) (AccessQuota, error) {
	return putAccess(ctx, c, "quotas/"+escape(q.Key()), q, i)
}

// DeleteQuota removes the quota that a key names, such as principal/ann.
func (c *Caller) DeleteQuota(ctx context.Context, key string, i Intent) error {
	return c.deleteAccess(ctx, "quotas/"+escape(key), i)
}

// Quotas returns one page of the quotas.
func (c *Caller) Quotas(ctx context.Context, q AccessQuery) (List[AccessQuota], error) {
	return listAccess[AccessQuota](ctx, c, "quotas", q)
}

// Key names a quota: principal/NAME or namespace/NAME.
func (q AccessQuota) Key() string {
	if q.Namespace != "" {
		return "namespace/" + q.Namespace
	}
	return "principal/" + q.Principal
}

// PutIssuer makes an issuer, or replaces it.
func (c *Caller) PutIssuer(ctx context.Context, issuer AccessIssuer, i Intent) (AccessIssuer, error) {
	return putAccess(ctx, c, "issuers/"+escape(issuer.Name), issuer, i)
}

// DeleteIssuer removes an issuer: its JWTs prove nothing from then on.
func (c *Caller) DeleteIssuer(ctx context.Context, name string, i Intent) error {
	return c.deleteAccess(ctx, "issuers/"+escape(name), i)
}

// Issuers returns one page of the issuers.
func (c *Caller) Issuers(ctx context.Context, q AccessQuery) (List[AccessIssuer], error) {
	return listAccess[AccessIssuer](ctx, c, "issuers", q)
}

// PutCertificate makes a rule for certificates, or replaces it.
func (c *Caller) PutCertificate(ctx context.Context, r AccessCertificate, i Intent) (AccessCertificate, error) {
	return putAccess(ctx, c, "certificates/"+escape(r.Name), r, i)
}

// DeleteCertificate removes a rule for certificates.
func (c *Caller) DeleteCertificate(ctx context.Context, name string, i Intent) error {
	return c.deleteAccess(ctx, "certificates/"+escape(name), i)
}

// Certificates returns one page of the rules for certificates.
func (c *Caller) Certificates(ctx context.Context, q AccessQuery) (List[AccessCertificate], error) {
	return listAccess[AccessCertificate](ctx, c, "certificates", q)
}

// Access returns who may do what, as one document.
func (c *Caller) Access(ctx context.Context) (Access, error) {
	return send[Access](ctx, c, request{method: "GET", path: "/v1/access", global: true})
}

// ApplyAccess makes access as a document says.
func (c *Caller) ApplyAccess(ctx context.Context, r ApplyAccessRequest) (AppliedAccess, error) {
	return send[AppliedAccess](ctx, c, request{method: "POST", path: "/v1/access/apply", body: r, global: true,
		idempotent: r.DryRun || r.IfRevision != 0})
}

// CanI asks whether somebody may do something in the caller's namespace.
func (c *Caller) CanI(ctx context.Context, q CanIQuery) (CanI, error) {
	query := url.Values{"verb": {q.Verb}}
	setText(query, "path", q.Path)
	setText(query, "id", q.ID)
	setText(query, "as", q.As)
	if len(q.Groups) > 0 {
		query["group"] = q.Groups
	}
	return send[CanI](ctx, c, request{method: "GET", path: "/v1/access/can-i", query: query})
}

// WhoCan asks who may do something in the caller's namespace.
func (c *Caller) WhoCan(ctx context.Context, verb, path string) (WhoCan, error) {
	query := url.Values{"verb": {verb}}
	setText(query, "path", path)
	return send[WhoCan](ctx, c, request{method: "GET", path: "/v1/access/who-can", query: query})
}

// Whoami asks who the server takes the caller for.
func (c *Caller) Whoami(ctx context.Context) (Whoami, error) {
	return send[Whoami](ctx, c, request{method: "GET", path: "/v1/access/whoami", global: true})
}

func putAccess[T any](ctx context.Context, c *Caller, path string, item T, i Intent) (T, error) {
	return send[T](ctx, c, request{method: "PUT", path: "/v1/access/" + path, body: item, query: i.query(),
		global: true, idempotent: true})
}

func (c *Caller) deleteAccess(ctx context.Context, path string, i Intent) error {
	r := request{method: "DELETE", path: "/v1/access/" + path, query: i.query(), global: true, idempotent: true}
	maybe := false // an earlier try removed it, and its answer was lost
	return c.anywhere(ctx, c.limit(r), r, func(ctx context.Context, server *Caller) error {
		_, err := server.doHere(ctx, r, &Nothing{})
		if maybe && errors.Is(err, leasehold.ErrNotFound) {
			return nil
		}
		maybe = maybe || errors.Is(err, leasehold.ErrUndecided)
		return err
	})
}

func listAccess[T any](ctx context.Context, c *Caller, kind string, q AccessQuery) (List[T], error) {
	return send[List[T]](ctx, c, request{method: "GET", path: "/v1/access/" + kind, query: q.query(), global: true})
}
