package access

import (
	"slices"
	"strings"
)

// A Part is a part of the paths of a namespace: one path, or all that begin with a prefix.
type Part struct {
	Path  string
	Exact bool // the path alone
}

// End returns the first path after all of the part; empty: there is none.
func (p Part) End() string {
	switch {
	case p.Exact:
		return p.Path + "\x00"
	case p.Path == "":
		return ""
	}
	for i := len(p.Path) - 1; i >= 0; i-- {
		if p.Path[i] != 0xff {
			return p.Path[:i] + string([]byte{p.Path[i] + 1})
		}
	}
	return ""
}

// Parts returns where in a namespace the asker may do something, at least to its own, among the paths that begin with
// a prefix: in order, none inside another. A list looks there alone, so that what is hidden costs nothing. Whether an
// item there may be shown, May says.
func (p *Permit) Parts(v Verb, namespace, prefix string) (parts []Part) {
	if p == nil {
		return []Part{{Path: prefix}}
	}
	for _, g := range p.grants {
		for _, name := range [2]string{namespace, AllNamespaces} {
			var all bool
			if parts, all = g.in(name).parts(parts, v, prefix); all {
				return []Part{{Path: prefix}}
			}
		}
	}
	slices.SortFunc(parts, func(a, b Part) int { return strings.Compare(a.Path, b.Path) })
	out := parts[:0]
	for _, part := range parts {
		last := len(out) - 1
		if last >= 0 && (out[last] == part || !out[last].Exact && strings.HasPrefix(part.Path, out[last].Path)) {
			continue
		}
		out = append(out, part)
	}
	return out
}

// parts appends where in the namespace something is allowed, and reports whether it is below the whole of a prefix.
func (s *space) parts(parts []Part, v Verb, prefix string) (_ []Part, all bool) {
	for _, r := range s.rights {
		if !(r.any | r.own).Has(v) {
			continue
		}
		below := r.prefix == "" || strings.HasSuffix(r.prefix, "/")
		switch {
		case strings.HasPrefix(r.prefix, prefix):
			parts = append(parts, Part{r.prefix, !below})
		case below && strings.HasPrefix(prefix, r.prefix):
			return nil, true
		}
	}
	return parts, false
}

// Seed returns a secret that all servers have and nobody else: the hash of the token with the first id. It is the same
// until that token is revoked; empty if there are no tokens.
func (p *Policy) Seed() string {
	_, t, _ := p.tokens.Min()
	if t == nil {
		return ""
	}
	return t.Hash
}
