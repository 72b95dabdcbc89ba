package terraform

import (
	"encoding/base64"
	"fmt"
	"net/http"

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
		return door.Invalid("after is not what \"next\" of a page said: leave it out to begin again")
	}
	from := tfstate.Path(c.query.Get("prefix"))
	q := core.RecordQuery{From: from, To: core.PrefixEnd(from), Most: int(limit)}
	if len(after) > 0 {
		q.From = max(from, string(after)+"\x00")
	}
	page, states, err := c.listed(q)
	if err != nil {
		return err
	}
	for i := range states {
		c.describe(&states[i], content{page.Records[i].Value, page.Records[i].Large})
	}
	answer := tfstate.Page[tfstate.State]{Items: states}
	if page.More {
		answer.Next = base64.RawURLEncoding.EncodeToString([]byte(page.Records[len(states)-1].Path))
	}
	c.send(http.StatusOK, "application/json", answer)
	return nil
}

// listed reads a page, and what the engine knows of each state in it.
func (c *call) listed(q core.RecordQuery) (page core.RecordPage, states []tfstate.State, err error) {
	var failure *leasehold.Error
	states = []tfstate.State{}
	err = c.look(func(v core.View) {
		if page, failure = v.Records(c.namespace, q); failure != nil {
			return
		}
		for _, r := range page.Records {
			states = append(states, c.stateIn(v, r.Path))
		}
	})
	if err == nil && failure != nil {
		err = failure
	}
	return page, states, err
}

// stateIn returns what the engine knows of a state. Serial and lineage are in its bytes.
func (c *call) stateIn(v core.View, path string) tfstate.State {
	s := tfstate.State{Name: tfstate.Name(path)}
	list, _ := v.Versions(c.namespace, path, 0, leasehold.MaxPage)
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

// versions answers with the versions of a state that are kept, the newest first.
func (c *call) versions() error {
	var found []leasehold.Version
	err := c.look(func(v core.View) { found, _ = v.Versions(c.namespace, c.path, 0, leasehold.MaxPage) })
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return c.noState()
	}
	answer := tfstate.Page[tfstate.Version]{Items: make([]tfstate.Version, len(found))}
	for i := range found {
		answer.Items[i] = c.versionOf(&found[i])
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
