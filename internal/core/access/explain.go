package access

// A Reason is a binding that allows something, and whether only to one's own.
type Reason struct {
	Binding *Binding
	Role    *Role
	Own     bool
}

// Why returns the bindings that let an asker do something at a path. Without any it may not.
func (p *Policy) Why(a *Asker, v Verb, namespace, path string) (why []Reason) {
	if p == nil {
		return nil
	}
	p.each(a, func(b *Binding, role *Role) {
		if r, ok := allows(b, role, v, namespace, path); ok {
			why = append(why, r)
		}
	})
	return why
}

// WhoCan returns the bindings that let anybody do something at a path.
func (p *Policy) WhoCan(v Verb, namespace, path string) (who []Reason) {
	if p == nil {
		return nil
	}
	for _, b := range p.bindings.Values() {
		if role, ok := p.Role(b.Role); ok {
			if r, ok := allows(b, role, v, namespace, path); ok {
				who = append(who, r)
			}
		}
	}
	return who
}

func allows(b *Binding, role *Role, v Verb, namespace, path string) (Reason, bool) {
	if b.Namespace != AllNamespaces && b.Namespace != namespace {
		return Reason{}, false
	}
	if !Covers(b.Prefix, path) && !coversBeside(b.Prefix, v, path) {
		return Reason{}, false
	}
	return Reason{b, role, !role.Any.Has(v)}, role.Any.Has(v) || role.Own.Has(v)
}
