package document

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Diff returns what differs between two policies, of which the first may be nil.
func Diff(before, after *access.Policy) []v1.AccessChange {
	from, to := before.Items(), after.Items()
	changes := compare([]v1.AccessChange{}, "role", from.Roles, to.Roles, roleText)
	changes = compare(changes, "binding", from.Bindings, to.Bindings, bindingText)
	changes = compare(changes, "quota", from.Quotas, to.Quotas, quotaText)
	changes = compare(changes, "issuer", from.Issuers, to.Issuers, issuerText)
	changes = compare(changes, "certificate", from.Certificates, to.Certificates, certificateText)
	return otherSecrets(compare(changes, "token", from.Tokens, to.Tokens, tokenText), before, to.Tokens)
}

// otherSecrets adds the tokens that have another secret. What is shown of a token does not tell.
func otherSecrets(changes []v1.AccessChange, before *access.Policy, tokens []*access.Token) []v1.AccessChange {
	if before == nil {
		return changes
	}
	for _, t := range tokens {
		if old, ok := before.Token(t.ID); ok && old.Hash != t.Hash {
			changes = append(changes, v1.AccessChange{Kind: "token", Name: t.ID, Action: "change",
				From: "the old secret", To: "another secret"})
		}
	}
	return changes
}

// compare goes through two lists that are sorted by name.
func compare[T any](
	changes []v1.AccessChange, kind string, from, to []*T, text func(*T) (name, text string),
) []v1.AccessChange {
	before := map[string]string{}
	for _, item := range from {
		name, text := text(item)
		before[name] = text
	}
	kept := map[string]bool{}
	for _, item := range to {
		name, now := text(item)
		was, known := before[name]
		kept[name] = true
		switch {
		case !known:
			changes = append(changes, v1.AccessChange{Kind: kind, Name: name, Action: "add", To: now})
		case was != now:
			changes = append(changes, v1.AccessChange{Kind: kind, Name: name, Action: "change", From: was, To: now})
		}
	}
	for _, item := range from {
		if name, was := text(item); !kept[name] {
			changes = append(changes, v1.AccessChange{Kind: kind, Name: name, Action: "remove", From: was})
		}
	}
	return changes
}

func roleText(r *access.Role) (name, text string) {
	shown := FromRole(r)
	text = strings.Join(shown.Verbs, ",")
	if shown.OnRevoke != "" {
		text += "; on revoke: " + shown.OnRevoke
	}
	return r.Name, text
}

func bindingText(b *access.Binding) (name, text string) {
	who := b.Principal
	if b.Group != "" {
		who = "group " + b.Group
	}
	where := "everything in namespace " + b.Namespace
	switch {
	case b.Namespace == access.AllNamespaces && b.Prefix == "":
		where = "everything"
	case b.Namespace == access.AllNamespaces:
		where = b.Prefix + " in all namespaces"
	case b.Prefix != "":
		where = b.Prefix + " in namespace " + b.Namespace
	}
	text = fmt.Sprintf("%s is %s of %s", who, b.Role, where)
	if b.Holders != "" {
		text += ", holding as " + b.Holders
	}
	return b.Name, text
}

func quotaText(q *access.Quota) (name, text string) {
	shown := FromQuota(q)
	key := shown.Key()
	shown.Principal, shown.Namespace = "", ""
	return key, compact(shown)
}

func issuerText(i *access.Issuer) (name, text string) {
	shown := FromIssuer(i)
	if shown.Keys != "" {
		shown.Keys = fmt.Sprintf("%d bytes with the SHA-256 %.4x…", len(i.Keys), sha256.Sum256([]byte(i.Keys)))
	}
	return i.Name, compact(shown)
}

func certificateText(c *access.Certificate) (name, text string) {
	return c.Name, compact(FromCertificate(c))
}

func tokenText(t *access.Token) (name, text string) {
	shown := FromToken(t)
	shown.Used = nil
	return t.ID, compact(shown)
}

// compact writes a value as JSON on one line.
func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // there is nothing in it that could fail
	}
	return string(text)
}
