package rights

import (
	"slices"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
)

// Put makes an item, or replaces it. Its name is in the URL, and may be in the body too.
func Put[T, U any](d *Desk, kind *document.Kind[T, U], path string, body *T,
	change *core.ChangeAccess) (out T, err error) {
	if kind.Named != nil && *kind.Named(body) == "" {
		*kind.Named(body) = path
	}
	if given := kind.Key(*body); given != path {
		return out, door.Invalid("the body is about %s, and the URL about %s: write the same name", door.Brief(given),
			door.Brief(path))
	}
	item, err := kind.Read(*body)
	if err != nil {
		return out, door.Invalid("%v", err)
	}
	change.Put = kind.Items(item)
	if err := door.CheckName("name", path, leasehold.MaxName); err != nil {
		return out, err
	}
	if _, err := d.toChange(); err != nil {
		return out, err
	}
	if _, err := d.Do(change); err != nil {
		return out, err
	}
	return kind.Write(item), nil
}

// Delete removes an item. One that does not exist is an error, so that a typing mistake is noticed.
func Delete[T, U any](d *Desk, kind *document.Kind[T, U], name string, change *core.ChangeAccess) error {
	key, err := kind.PolicyKey(name)
	if err != nil {
		return door.Invalid("%v", err)
	}
	if err := door.CheckName("name", name, leasehold.MaxName); err != nil {
		return err
	}
	*kind.Keys(&change.Remove) = []string{key}
	return door.Decide(d.Ctx, errBusy, func(tried bool) (bool, error) {
		p, err := d.toChange()
		if err != nil {
			return false, err
		}
		all := p.Items()
		have := all.Keys()
		if !slices.Contains(*kind.Keys(&have), key) {
			if tried || d.Once != (core.Request{}) {
				return true, nil // an earlier try may have removed it, at this server or at another
			}
			return false, &leasehold.Error{Code: leasehold.NotFound, Message: "there is no " + kind.Name + " " +
				door.Brief(name)}
		}
		_, err = d.Do(change)
		return err == nil, err
	})
}

// List returns all items of a kind.
func List[T, U any](d *Desk, kind *document.Kind[T, U]) (all []T, err error) {
	p, err := d.asAdmin()
	if err != nil {
		return nil, err
	}
	for _, item := range kind.All(p.Items()) {
		all = append(all, kind.Write(item))
	}
	return all, nil
}

// AddUse adds to quotas how much of what they limit there is. One of the principal * stands for many, and has none.
func (d *Desk) AddUse(quotas []v1.AccessQuota) error {
	return d.Backend.Read(d.Ctx, func(v core.View) {
		for i := range quotas {
			q := &quotas[i]
			if q.Principal == access.Everybody {
				continue
			}
			use := v.UseOf(&access.Quota{Principal: q.Principal, Namespace: q.Namespace})
			q.Used = &v1.QuotaUse{Leases: int64(use.Leases), Sessions: int64(use.Sessions), Waiters: int64(use.Waiters),
				Records: int64(use.Records), Bytes: int64(use.Bytes)}
		}
	})
}
