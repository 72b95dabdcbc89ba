package credential

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/leasehold/leasehold/internal/core/access"
)

const (
	maxJWT    = 16 << 10
	maxValues = 1000 // of all claims of a JWT

	// leeway is how far the clock of an issuer may be ahead. Behind it may be as far as it likes: its tokens only end
	// sooner.
	leeway = 30 * time.Second
)

// algorithms are those by which somebody who can check a signature cannot make one.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256,
	oidc.ES384, oidc.ES512, oidc.EdDSA}

// judgeJWT says who has a JWT, by the keys that an issuer is found to have.
func (l *Login) judgeJWT(ctx context.Context, jwt string, k *known, keys func(*issuer) keySource) (*entry, error) {
	iss, err := peek(jwt)
	if err != nil {
		return nil, err
	}
	err = refuse(Issuer, "the issuer of the JWT is not trusted here: check which server it is for, or ask an admin to "+
		"add the issuer")
	for _, i := range k.issuers[iss] {
		var e *entry
		if e, err = l.judgeBy(ctx, jwt, k, &verification{issuer: i, keys: keys(i)}); err == nil {
			return e, nil
		}
	}
	return nil, err
}

// judgeBy says who has a JWT, if it is one of an issuer.
func (l *Login) judgeBy(ctx context.Context, jwt string, k *known, by *verification) (*entry, error) {
	i := by.issuer
	config := &oidc.Config{SupportedSigningAlgs: algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true}
	if _, err := oidc.NewVerifier(i.URL, by, config).Verify(ctx, jwt); err != nil {
		var r *Refusal
		if errors.As(by.err, &r) {
			return nil, r
		}
		return nil, refuse(Malformed, "the JWT of issuer "+i.Name+" cannot be read: get another one")
	}
	claims, err := readClaims(by.payload)
	if err != nil {
		return nil, err
	}
	ends, err := claims.check(i.Issuer, l.config.Now())
	if err != nil {
		return nil, err
	}
	subject, err := claims.principal(i.Issuer)
	if err != nil {
		return nil, err
	}
	asker := &access.Asker{Principal: i.Name + ":" + subject, Groups: claims.groups(i.Issuer, k.policy)}
	return &entry{proof: &Proof{Asker: asker, Kind: JWT, Expires: ends, issuer: i.Issuer}, issuer: i, keys: by.set}, nil
}

// peek returns the issuer that a JWT names. Nothing is proven yet.
func peek(jwt string) (iss string, err error) {
	if len(jwt) > maxJWT {
		return "", refuse(Malformed, fmt.Sprintf("the credential has %d bytes: at most %d are allowed", len(jwt),
			maxJWT))
	}
	head, rest, _ := strings.Cut(jwt, ".")
	body, signature, three := strings.Cut(rest, ".")
	if !three || strings.Contains(signature, ".") {
		return "", refuse(Malformed, "the credential is neither a token of this server, which begins with lh_ and has "+
			"46 characters, nor a JWT: check that it was copied whole")
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	var payload struct {
		Issuer string `json:"iss"`
	}
	if unpack(head, &header) != nil || unpack(body, &payload) != nil {
		return "", refuse(Malformed, "the JWT cannot be read: check that it was copied whole")
	}
	if !slices.Contains(algorithms, header.Algorithm) {
		return "", refuse(Algorithm, "the JWT is not signed by one of "+strings.Join(algorithms, ", ")+
			": have the issuer use one of them")
	}
	return payload.Issuer, nil
}

func unpack(part string, into any) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// claims are what a JWT says, by name: all that is text, a number or a truth value, or a list of those.
type claims map[string][]string

func readClaims(payload []byte) (claims, error) {
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, refuse(Malformed, "the JWT cannot be read: get another one")
	}
	out, n := claims{}, 0
	for name, value := range all {
		list, many := value.([]any)
		if !many {
			list = []any{value}
		}
		for _, one := range list {
			if text, ok := scalar(one); ok {
				out[name] = append(out[name], text)
				n++
			}
		}
	}
	if n > maxValues {
		return nil, refuse(Claims, fmt.Sprintf("the JWT has %d values: at most %d are allowed; have the issuer leave "+
			"some out", n, maxValues))
	}
	return out, nil
}

func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// check refuses a JWT that is for somebody else or another time, and returns when it ends.
func (c claims) check(i *access.Issuer, now time.Time) (ends time.Time, err error) {
	ends, dated := c.moment("exp")
	switch {
	case !slices.ContainsFunc(c["aud"], func(a string) bool { return slices.Contains(i.Audiences, a) }):
		return ends, refuse(Audience, "the JWT of issuer "+i.Name+" is for another audience: get one for "+
			strings.Join(i.Audiences, " or "))
	case !dated:
		return ends, refuse(Claims, "the JWT of issuer "+i.Name+" does not say when it expires: get one that has exp")
	case !now.Before(ends):
		return ends, refuse(Expired, expiredMessage("JWT", ends))
	}
	for _, name := range []string{"nbf", "iat"} {
		from, ok := c.moment(name)
		if len(c[name]) > 0 && !ok {
			return ends, refuse(Malformed, "the JWT of issuer "+i.Name+" has a claim "+name+" that is not a time")
		}
		if ok && from.After(now.Add(leeway)) {
			return ends, refuse(NotYet, fmt.Sprintf("the JWT is not valid before %s, and the clock here says %s: "+
				"check the clocks", from.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
		}
	}
	return ends, nil
}

// moment reads a claim that is a time, in seconds since 1970.
func (c claims) moment(name string) (time.Time, bool) {
	if len(c[name]) != 1 {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseFloat(c[name][0], 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 {
		return time.Time{}, false
	}
	const latest = 253402300799 // the year 9999
	whole, part := math.Modf(min(seconds, latest))
	return time.Unix(int64(whole), int64(part*1e9)), true
}

// principal returns the name that an issuer gives whom the JWT is about.
func (c claims) principal(i *access.Issuer) (string, error) {
	claim := i.Principal
	if claim == "" {
		claim = "sub"
	}
	if len(c[claim]) != 1 || c[claim][0] == "" || strings.ContainsFunc(c[claim][0], func(r rune) bool {
		return r < ' ' || r == 0x7f
	}) {
		return "", refuse(Claims, "the JWT of issuer "+i.Name+" has no claim "+claim+" that names somebody")
	}
	return c[claim][0], nil
}

// claimGroup begins the names of groups that everybody is in who has a claim: bindings can be to them without a rule.
const claimGroup = "claim:"

// groups returns the groups that claims put somebody into, of those that have bindings.
func (c claims) groups(i *access.Issuer, p *access.Policy) (groups []string) {
	for _, rule := range i.Groups {
		match := func(value string) bool { return access.Matches(rule.Value, value) }
		if p.NamesGroup(rule.Group) && slices.ContainsFunc(c[rule.Claim], match) {
			groups = append(groups, rule.Group)
		}
	}
	for name, values := range c {
		if strings.Contains(name, "=") {
			continue // a=b with the value c would be taken for a with the value b=c
		}
		for _, value := range values {
			if g := claimGroup + i.Name + ":" + name + "=" + value; p.NamesGroup(g) {
				groups = append(groups, g)
			}
		}
	}
	return sorted(groups)
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
