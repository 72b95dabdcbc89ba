package terraform

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/tfstate"
)

const defaultLimit = 100

// list answers with the states whose names begin with a prefix.
func (c *call) list() error {
	limit, err := c.query.Number("limit", defaultLimit, tfstate.MaxLimit)
	if err != nil {
		return err
	}
	after, err := base64.RawURLEncoding.DecodeString(c.query.Get("after"))
	if err != nil || len(after) > leasehold.MaxName {
		return door.Invalid("after is not the \"next\" of a page: leave it out to start again")
	}
	prefix := c.query.Get("prefix")
	if c.azure {
		prefix = tfstate.AzureMark + prefix
	}
	found, next, err := c.listed(tfstate.Path(prefix), string(after), int(limit))
	if err != nil {
		return err
	}
	answer := tfstate.Page[tfstate.State]{Items: []tfstate.State{}}
	for i := range found {
		if found[i].stored {
			c.describe(&found[i].State, found[i].content)
		}
		if !c.azure || isState(&found[i].State) {
			answer.Items = append(answer.Items, found[i].State)
		}
	}
	if next != "" {
		answer.Next = base64.RawURLEncoding.EncodeToString([]byte(next))
	}
	c.send(http.StatusOK, "application/json", answer)
	return nil
}

// isState reports whether a blob is a state: it reads as one, or it is empty, locked, and may become one.
// Containers have records beside those of their blobs, and a container may have blobs of any kind.
func isState(s *tfstate.State) bool {
	return tfstate.CheckState(s.Name) == nil && (s.Problem == "" && s.Revision != 0 || s.Lock != nil && s.Size == 0)
}

// A found is a state that a list shows. One that is not stored is only locked: nobody has written
// it yet, or it was deleted.
type found struct {
	tfstate.State
	path    string
	stored  bool
	content content
}

// listed reads a page of the states after a path, in order, and where the next page begins; empty
// at the end. States that are stored and states that are locked are two lists of the engine, each
// with pages of its own: what lies beyond the shorter page is left to the next one.
func (c *call) listed(prefix, after string, limit int) (list []found, next string, err error) {
	var failure *leasehold.Error
	err = c.look(func(v core.View) {
		q := core.RecordQuery{From: prefix, To: core.PrefixEnd(prefix), Most: limit}
		if after != "" {
			q.From = max(prefix, after+"\x00")
		}
		var page core.RecordPage
		if page, failure = v.Records(c.namespace, q); failure != nil {
			return
		}
		stored := map[string]bool{}
		for _, r := range page.Records {
			stored[r.Path] = true
			list = append(list, found{path: r.Path, stored: true, content: content{r.Value, r.Large}})
		}
		locks, end := v.List(c.namespace, prefix, after, limit, false)
		for i := range locks {
			if path := locks[i].Resource; !stored[path] && isTaken(&locks[i]) &&
				tfstate.CheckState(tfstate.Name(path)) == nil {
				list = append(list, found{path: path})
			}
		}
		next = end
		if last := page.Next(); last != "" {
			next = min(cmp.Or(end, last), last)
		}
		list, next = cut(list, next, limit)
		for i := range list {
			list[i].State = c.stateIn(v, list[i].path)
		}
	})
	if err == nil && failure != nil {
		err = failure
	}
	return list, next, err
}

// isTaken reports whether a lock is held or waited for, or keeps others away until somebody
// acknowledges how it ended.
func isTaken(s *leasehold.Status) bool {
	return s.Holding > 0 || s.Waiting > 0 || s.Unacknowledged != nil
}

// cut orders a page and ends it at a path, empty for no end, and at a limit.
func cut(list []found, next string, limit int) ([]found, string) {
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.path, b.path) })
	if next != "" {
		list = slices.DeleteFunc(list, func(f found) bool { return f.path > next })
	}
	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].path
	}
	return list, next
}

// stateIn returns what the engine knows of a state. Serial and lineage are in its bytes.
func (c *call) stateIn(v core.View, path string) tfstate.State {
	s := tfstate.State{Name: tfstate.Name(path)}
	list := c.versionsIn(v, path)
	if s.Versions = len(list); s.Versions > 0 && list[0].Current {
		s.Revision, s.Written, s.Holder = uint64(list[0].Revision), moment(list[0].Written), list[0].Holder
		s.Size = content{list[0].Value, list[0].Large}.size()
	}
	status := v.Status(c.namespace, path, 0)
	if len(status.Holders) > 0 {
		s.Lock = &tfstate.Lock{Waiting: status.Waiting}
		describeLock(s.Lock, &status.Holders[0])
		return s
	}
	if end := status.Unacknowledged; end != nil {
		s.Unacknowledged = fmt.Sprintf("%s (%v)", end.Holder, end.How)
	}
	s.AvailableAt = moment(status.AvailableAt)
	return s
}

// describe fills in what is in the bytes of a state, or why they cannot be read.
func (c *call) describe(s *tfstate.State, of content) {
	head, err := c.headOf(of)
	if err != nil {
		s.Problem = err.Error()
		return
	}
	s.Serial, s.Lineage, s.Writer = head.Serial, head.Lineage, head.Terraform
}

// info answers with what is known of one state.
func (c *call) info() error {
	var s tfstate.State
	var record *leasehold.Record
	err := c.look(func(v core.View) {
		s = c.stateIn(v, c.path)
		record, _ = v.Record(c.namespace, c.path, 0)
		s.Permit, _ = c.permitIn(v, record)
	})
	switch {
	case err != nil:
		return err
	case record == nil && s.Lock == nil:
		return c.noState()
	case record != nil:
		c.describe(&s, content{record.Value, record.Large})
	}
	c.send(http.StatusOK, "application/json", s)
	return nil
}

func (c *call) noState() error {
	return &leasehold.Error{Code: leasehold.NotFound, Message: "there is no state " + c.state}
}

// versionsIn returns the versions of a state that are kept, the newest first. The azurerm backend makes
// an empty blob before it writes a state, which is no version of it.
func (c *call) versionsIn(v core.View, path string) []leasehold.Version {
	list, _ := v.Versions(c.namespace, path, 0, leasehold.MaxPage)
	if !c.azure {
		return list
	}
	return slices.DeleteFunc(list, func(v leasehold.Version) bool { return content{v.Value, v.Large}.size() == 0 })
}

// versions answers with the versions of a state that are kept, the newest first.
func (c *call) versions() error {
	var found []leasehold.Version
	err := c.look(func(v core.View) { found = c.versionsIn(v, c.path) })
	if err != nil {
		return err
	}
	answer := tfstate.Page[tfstate.Version]{Items: []tfstate.Version{}}
	for i := range found {
		answer.Items = append(answer.Items, c.versionOf(&found[i]))
	}
	if len(answer.Items) == 0 {
		return c.noState()
	}
	c.send(http.StatusOK, "application/json", answer)
	return nil
}

func (c *call) versionOf(v *leasehold.Version) tfstate.Version {
	of := content{v.Value, v.Large}
	shown := tfstate.Version{
		Revision: uint64(v.Revision), Size: of.size(), Written: moment(v.Written),
		Holder: v.Holder, Current: v.Current, Deleted: v.Deleted,
	}
	head, err := c.headOf(of)
	if err != nil {
		shown.Problem = err.Error()
		return shown
	}
	shown.Serial, shown.Lineage, shown.Writer = head.Serial, head.Lineage, head.Terraform
	return shown
}
