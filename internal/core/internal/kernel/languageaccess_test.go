package kernel_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// parseAsker reads "ann team-a ops token=t1": a principal, its groups and its token.
func parseAsker(text string) (*access.Asker, error) {
	p := newPhrase("as " + text)
	a := &access.Asker{Principal: p.word("principal"), Token: p.option("token", "")}
	a.Groups, p.words = p.words, nil
	switch a.Principal {
	case "nobody":
		a = nil
	case "the-server":
		a = &access.System
	}
	return a, p.end()
}

// proven is the asker with its first token, unless the story says which, or it has none.
func (t *teller) proven() *access.Asker {
	a := t.asker
	if a == nil || a == &access.System || a.Token != "" || t.state.Policy() == nil {
		return a
	}
	for _, token := range t.state.Policy().Items().Tokens {
		if token.Principal == a.Principal {
			return &access.Asker{Principal: a.Principal, Groups: a.Groups, Token: token.ID}
		}
	}
	return a
}

// access reads a change of who may do what: +KIND:… puts an item, -KIND:NAME removes one.
func (p *phrase) access() core.Command {
	c := &core.ChangeAccess{
		Replace: p.flag("replace"), Off: p.flag("off"), IfRevision: p.number("if"), By: p.option("by", ""), Reason: p.option("reason", ""),
		IfNone: p.flag("if-none"), Wall: int64(p.number("wall")),
	}
	c.Declared.Hash, c.Declared.Server, _ = strings.Cut(p.option("file", ""), "@")
	if used := p.option("used", ""); used != "" {
		id, at, _ := strings.Cut(used, "@")
		wall, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			p.wrong("%s is not when a token was used", used)
		}
		c.Used = []access.Use{{ID: id, Wall: wall}}
	}
	for _, word := range p.words {
		parts := append(strings.Split(word[1:], ":"), make([]string, 8)...)
		switch word[0] {
		case '+':
			p.putAccess(&c.Put, parts)
		case '-':
			p.removeAccess(&c.Remove, parts)
		default:
			p.wrong("%s is neither + nor -", word)
		}
	}
	p.words = nil
	return c
}

func (p *phrase) putAccess(put *access.Items, parts []string) {
	switch parts[0] {
	case "token": // ID:PRINCIPAL:GROUPS:expires@WALL
		hash := parts[1] + strings.Repeat(".", 32)
		ends, _ := strconv.ParseInt(strings.TrimPrefix(parts[4], "expires@"), 10, 64)
		put.Tokens = append(put.Tokens, &access.Token{ID: parts[1], Hash: hash[:32], Principal: parts[2], Groups: listOf(parts[3]), ExpiresWall: ends})
	case "role": // NAME:ANY:OWN:end
		put.Roles = append(put.Roles, &access.Role{Name: parts[1], Any: p.verbs(parts[2]), Own: p.verbs(parts[3]), EndOnRevoke: parts[4] == "end"})
	case "binding": // NAME:ROLE:PRINCIPAL-OR-@GROUP:NAMESPACE:PREFIX:HOLDERS
		b := &access.Binding{Name: parts[1], Role: parts[2], Principal: strings.ReplaceAll(parts[3], "~", ":"), Namespace: parts[4], Prefix: parts[5], Holders: parts[6]}
		if group, is := strings.CutPrefix(b.Principal, "@"); is {
			b.Principal, b.Group = "", group
		}
		put.Bindings = append(put.Bindings, b)
	case "issuer": // NAME:GROUPS: whose JWTs put everybody into some groups
		i := &access.Issuer{Name: parts[1], URL: "https://" + parts[1], Audiences: []string{"leases"}}
		for _, group := range listOf(parts[2]) {
			i.Groups = append(i.Groups, access.ClaimRule{Claim: "sub", Value: "*", Group: group})
		}
		put.Issuers = append(put.Issuers, i)
	case "certificate": // NAME:PATTERN:PRINCIPAL:GROUPS
		put.Certificates = append(put.Certificates,
			&access.Certificate{Name: parts[1], SAN: "dns:" + parts[2], Principal: parts[3], Groups: listOf(parts[4])})
	case "quota": // WHO:MOST-KIND,…
		put.Quotas = append(put.Quotas, p.quota(parts[1:]))
	default:
		p.wrong("there is no %q in a policy of a story", parts[0])
	}
}

func (p *phrase) removeAccess(remove *access.Keys, parts []string) {
	switch parts[0] {
	case "token":
		remove.Tokens = append(remove.Tokens, parts[1])
	case "role":
		remove.Roles = append(remove.Roles, parts[1])
	case "binding":
		remove.Bindings = append(remove.Bindings, parts[1])
	case "issuer":
		remove.Issuers = append(remove.Issuers, parts[1])
	case "certificate":
		remove.Certificates = append(remove.Certificates, parts[1])
	case "quota":
		remove.Quotas = append(remove.Quotas, quotaOf(parts[1]).Key())
	default:
		p.wrong("there is no %q in a policy of a story", parts[0])
	}
}

func listOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (p *phrase) verbs(text string) (set access.Verbs) {
	for _, name := range listOf(text) {
		v, ok := access.VerbOf(name)
		if !ok {
			p.wrong("there is no verb %q", name)
		}
		set |= access.Of(v)
	}
	return set
}

func writeAccess(c *core.ChangeAccess) string {
	parts := []string{"access"}
	for _, t := range c.Put.Tokens {
		used := ""
		if t.ExpiresWall != 0 {
			used = fmt.Sprintf(":expires@%d", t.ExpiresWall)
		}
		if t.UsedWall != 0 {
			used += fmt.Sprintf(":used@%d", t.UsedWall)
		}
		parts = append(parts, fmt.Sprintf("+token:%s:%s:%s%s", t.ID, t.Principal, strings.Join(t.Groups, ","), used))
	}
	for _, r := range c.Put.Roles {
		end := ""
		if r.EndOnRevoke {
			end = ":end"
		}
		parts = append(parts, fmt.Sprintf("+role:%s:%v:%v%s", r.Name, r.Any, r.Own, end))
	}
	for _, b := range c.Put.Bindings {
		subject := strings.ReplaceAll(b.Principal, ":", "~")
		if b.Group != "" {
			subject = "@" + b.Group
		}
		parts = append(parts, strings.TrimRight(fmt.Sprintf("+binding:%s:%s:%s:%s:%s:%s", b.Name, b.Role, subject, b.Namespace, b.Prefix, b.Holders), ":"))
	}
	for _, q := range c.Put.Quotas {
		parts = append(parts, writeQuota(q))
	}
	for _, i := range c.Put.Issuers {
		group := ""
		for _, r := range i.Groups {
			group += ":" + r.Group
		}
		parts = append(parts, "+issuer:"+i.Name+group)
	}
	for _, i := range c.Put.Certificates {
		parts = append(parts, strings.TrimRight(fmt.Sprintf("+certificate:%s:%s:%s:%s", i.Name, i.SAN[len("dns:"):], i.Principal, strings.Join(i.Groups, ",")), ":"))
	}
	for _, key := range c.Remove.Quotas {
		who := key[1:]
		if key[0] == 'n' {
			who = "/" + who
		}
		parts = append(parts, "-quota:"+who)
	}
	for _, kind := range []struct {
		name string
		list []string
	}{{"token", c.Remove.Tokens}, {"role", c.Remove.Roles}, {"binding", c.Remove.Bindings},
		{"issuer", c.Remove.Issuers}, {"certificate", c.Remove.Certificates}} {
		for _, name := range kind.list {
			parts = append(parts, "-"+kind.name+":"+name)
		}
	}
	for _, use := range c.Used {
		parts = append(parts, fmt.Sprintf("used=%s@%d", use.ID, use.Wall))
	}
	return sentence(append(parts, fileOf(c.Declared), flagged("if-none", c.IfNone), flagged("replace", c.Replace), flagged("off", c.Off), option("if", c.IfRevision), option("wall", c.Wall), option("by", c.By), option("reason", c.Reason))...)
}

func fileOf(d access.Declaration) string {
	if d.Hash == "" {
		return ""
	}
	return "file=" + d.Hash + "@" + d.Server
}

// policy tells who may do what.
func (t *teller) policy(p *access.Policy) {
	if p == nil {
		t.say("everybody may do everything")
		return
	}
	t.say("%s", strings.TrimSpace(fmt.Sprintf("revision %d %s", p.Revision, fileOf(p.Declared))))
	all := p.Items()
	for line := range strings.FieldsSeq(writeAccess(&core.ChangeAccess{Put: all})) {
		if line != "access" {
			t.say("%s", line[1:])
		}
	}
}

// owner tells whose something is.
func (t *teller) owner(p *phrase, view core.View) {
	what, namespace := p.word("kind"), leasehold.DefaultNamespace
	var o *access.Owner
	switch name := p.word("name"); what {
	case "claim":
		o = view.OwnerOfClaim(namespace, name)
	case "session":
		o = view.OwnerOfSession(namespace, name)
	case "record":
		o = view.OwnerOfRecord(namespace, name)
	default:
		p.wrong("nobody owns a %s", what)
	}
	switch {
	case o == nil:
		t.say("nobody's")
	case o.Group != "":
		t.say("%s of %s", o.Principal, o.Group)
	default:
		t.say("%s", o.Principal)
	}
}
