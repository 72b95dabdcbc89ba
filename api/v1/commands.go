package v1

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/resp/pipeline"
	"github.com/leasehold/leasehold/internal/resp/words"
)

// An encoder writes a request.
type encoder struct{ words.Encoder }

func (e *encoder) duration(keyword string, d Duration) {
	if d != 0 {
		e.Word(keyword)
		e.Word(d.String())
	}
}

// A command is a request in both wires' words. What it says by HTTP is built only when it is needed.
type command interface {
	// http completes the request.
	http(r *request)

	// resp writes the request, and reports false if only HTTP can say it.
	resp(e *encoder) bool

	lane() pipeline.Lane
}

type acquireCommand struct{ AcquireRequest }

func (c *acquireCommand) http(r *request) { r.path, r.body = "/v1/acquire", c.AcquireRequest }

func (c *acquireCommand) lane() pipeline.Lane { return pipeline.Commands }

func (c *acquireCommand) resp(e *encoder) bool {
	r := &c.AcquireRequest
	// A wait that nobody can name ends with its HTTP request; here others share the connection. And a wait without
	// a session is kept alive by the connection, also after its caller has given up.
	if r.TTL.None || r.Wait > 0 && (r.ID == "" || r.Session == "") {
		return false
	}
	e.Begin("LH.ACQUIRE")
	e.Name("resource", r.Resource)
	e.Text("HOLDER", "holder", r.Holder)
	e.Text("ID", "id", r.ID)
	e.Named = r.ID != ""
	e.Flag("SHARED", r.Shared)
	switch {
	case r.Slots == AllSlots:
		e.Text("SLOTS", "slots", "all")
	default:
		e.Number("SLOTS", int64(r.Slots))
	}
	e.Number("CAPACITY", int64(r.Capacity))
	e.Text("WHERE", "where", r.Where)
	e.Flag("SPREAD", r.Spread)
	if len(r.Units) > 0 {
		e.JSON("UNITS", r.Units)
	}
	if len(r.Also) > 0 {
		for _, item := range r.Also {
			e.Check("also", item.Resource, item.ID)
		}
		e.JSON("ALSO", r.Also)
	}
	e.Text("PARTY", "party", r.Party)
	e.Text("TTL", "ttl", r.TTL.Word())
	e.duration("TTL", r.TTL.Duration)
	e.Text("SESSION", "session", r.Session)
	e.duration("GRACE", r.Grace)
	e.duration("HOLD_LIMIT", r.HoldLimit)
	e.Number("PRIORITY", int64(r.Priority))
	e.Labels(r.Labels)
	e.Text("REASON", "reason", r.Reason)
	e.Text("RESERVATION", "reservation", r.Reservation)
	if r.Wait > 0 {
		e.duration("WAIT", r.Wait)
		e.Text("PUSH", "push", e.Tag)
	}
	return true
}

type renewCommand struct{ RenewRequest }

func (c *renewCommand) http(r *request)     { r.path, r.body = "/v1/renew", c.RenewRequest }
func (c *renewCommand) lane() pipeline.Lane { return pipeline.Renewals }

func (c *renewCommand) resp(e *encoder) bool {
	e.Begin("LH.RENEW")
	e.Named = true
	e.Name("id", c.ID)
	if c.Note != nil {
		e.Word("NOTE")
		e.Name("note", *c.Note)
	}
	return true
}

// releaseWords are the keywords that may follow several ids.
var releaseWords = []string{"ID", "IDS", "SESSION", "WITHDRAW", "NAMESPACE", "KEY", "KEY_SESSION"}

type releaseCommand struct{ ReleaseRequest }

func (c *releaseCommand) http(r *request)     { r.path, r.body = "/v1/release", c.ReleaseRequest }
func (c *releaseCommand) lane() pipeline.Lane { return pipeline.Commands }

func (c *releaseCommand) resp(e *encoder) bool {
	if c.ID == "" && len(c.IDs) == 0 {
		return false
	}
	e.Begin("LH.RELEASE")
	if c.ID != "" {
		e.Name("id", c.ID)
	}
	for i, id := range c.IDs {
		if i > 0 && slices.Contains(releaseWords, strings.ToUpper(id)) {
			return false // it would be taken for the keyword
		}
		e.Name("ids", id)
	}
	e.Text("SESSION", "session", c.Session)
	e.Flag("WITHDRAW", c.Withdraw)
	return true
}

type changeCommand struct{ ChangeRequest }

func (c *changeCommand) http(r *request)     { r.path, r.body = "/v1/change", c.ChangeRequest }
func (c *changeCommand) lane() pipeline.Lane { return pipeline.Commands }

func (c *changeCommand) resp(e *encoder) bool {
	e.Begin("LH.CHANGE")
	e.Named = true
	e.Name("id", c.ID)
	e.Text("HOLDER", "holder", c.Holder)
	e.Text("NEW_ID", "new_id", c.NewID)
	return true
}

type breakCommand struct{ BreakRequest }

func (c *breakCommand) http(r *request)     { r.path, r.body = "/v1/break", c.BreakRequest }
func (c *breakCommand) lane() pipeline.Lane { return pipeline.Commands }

func (c *breakCommand) resp(e *encoder) bool {
	if c.ID == "" {
		return false // by resource: people do that
	}
	e.Begin("LH.BREAK")
	e.Text("ID", "id", c.ID)
	e.Text("RESOURCE", "resource", c.Resource)
	e.Unsigned("TOKEN", c.Token)
	e.Flag("ALL", c.All)
	e.Flag("WAITING", c.Waiting)
	if c.Period != nil {
		e.Text("PERIOD", "period", c.Period.String())
	}
	e.Text("BY", "by", c.By)
	e.Text("REASON", "reason", c.Reason)
	return true
}

type openCommand struct{ SessionRequest }

func (c *openCommand) http(r *request)     { r.path, r.body = "/v1/sessions", c.SessionRequest }
func (c *openCommand) lane() pipeline.Lane { return pipeline.Commands }

func (c *openCommand) resp(e *encoder) bool {
	if c.TTL.None || c.TTL.Word() != "" {
		return false
	}
	e.Begin("LH.SESSION", "OPEN")
	e.Text("ID", "id", c.ID)
	e.Named = c.ID != ""
	e.duration("TTL", c.TTL.Duration)
	e.Labels(c.Labels)
	return true
}

type renewSessionCommand struct {
	id   string
	seen uint64
	asks bool // for interventions after seen alone
}

func (c *renewSessionCommand) lane() pipeline.Lane { return pipeline.Renewals }

func (c *renewSessionCommand) http(r *request) {
	r.path = "/v1/sessions/" + escape(c.id) + "/renew"
	if c.asks {
		r.query = url.Values{"seen": {strconv.FormatUint(c.seen, 10)}}
	}
}

func (c *renewSessionCommand) resp(e *encoder) bool {
	e.Begin("LH.SESSION", "RENEW")
	e.Named = true
	e.Name("id", c.id)
	if c.asks {
		e.Word("SEEN")
		e.Word(strconv.FormatUint(c.seen, 10))
	}
	return true
}

type closeSessionCommand struct{ id string }

func (c *closeSessionCommand) http(r *request)     { r.path = "/v1/sessions/" + escape(c.id) }
func (c *closeSessionCommand) lane() pipeline.Lane { return pipeline.Commands }

func (c *closeSessionCommand) resp(e *encoder) bool {
	e.Begin("LH.SESSION", "CLOSE")
	e.Name("id", c.id)
	return true
}

type readCommand struct {
	path    string
	waiters int
}

func (c *readCommand) lane() pipeline.Lane { return pipeline.Reads }

func (c *readCommand) http(r *request) {
	r.path, r.query = "/v1/resources/"+escapePath(c.path), url.Values{}
	setNumber(r.query, "queue", c.waiters)
}

func (c *readCommand) resp(e *encoder) bool {
	e.Begin("LH.GET")
	e.Name("resource", c.path)
	e.Number("QUEUE", int64(c.waiters))
	return true
}

type getCommand struct {
	path     string
	revision uint64
}

func (c *getCommand) lane() pipeline.Lane { return pipeline.Reads }

func (c *getCommand) http(r *request) {
	r.path, r.query = "/v1/records/"+escapePath(c.path), url.Values{}
	setRevision(r.query, c.revision)
}

func (c *getCommand) resp(e *encoder) bool {
	e.Begin("LH.RECORD", "GET")
	e.Name("path", c.path)
	e.Unsigned("REVISION", c.revision)
	return true
}

type putCommand struct{ PutRequest }

func (c *putCommand) lane() pipeline.Lane { return pipeline.Reads }

func (c *putCommand) http(r *request) {
	r.path, r.query, r.header = "/v1/records/"+escapePath(c.Path), url.Values{}, http.Header{}
	setText(r.query, "session", c.Session)
	setExpected(r.header, c.IfRevision)
	if c.IfAbsent {
		r.header.Set("If-None-Match", "*")
	}
	c.Fence.set(r.header)
	if c.Version != 0 {
		r.query.Set("version", strconv.FormatUint(c.Version, 10))
	}
	switch {
	case c.Keep < 0:
		r.query.Set("keep", "none")
	case c.Keep > 0:
		r.query.Set("keep", strconv.Itoa(c.Keep))
	}
	if r.stream = c.Body; c.Body == nil {
		r.value = &c.Value
	}
}

// resp leaves to HTTP what is large, and what few programs ask for.
func (c *putCommand) resp(e *encoder) bool {
	if c.Body != nil || len(c.Value) > leasehold.MaxValue || c.Version != 0 || c.Keep != 0 || c.IfRevision != 0 ||
		c.IfAbsent {
		return false
	}
	e.Begin("LH.RECORD", "PUT")
	e.Name("path", c.Path)
	e.Bytes(c.Value)
	e.Text("SESSION", "session", c.Session)
	e.fence(c.Fence)
	return true
}

func (e *encoder) fence(f Fence) {
	e.Text("LEASE", "lease", f.Lease)
	e.Unsigned("TOKEN", f.Token)
}

type deleteCommand struct{ DeleteRequest }

func (c *deleteCommand) lane() pipeline.Lane { return pipeline.Reads }

func (c *deleteCommand) http(r *request) {
	r.path, r.query, r.header = "/v1/records", url.Values{}, http.Header{}
	setText(r.query, "prefix", c.Prefix)
	setText(r.query, "from", c.From)
	setText(r.query, "to", c.To)
	setExpected(r.header, c.IfRevision)
	c.Fence.set(r.header)
	if c.Path != "" {
		r.path += "/" + escapePath(c.Path)
	}
}

func (c *deleteCommand) resp(e *encoder) bool {
	if c.Path == "" || c.Prefix != "" || c.From != "" || c.To != "" || c.IfRevision != 0 {
		return false
	}
	e.Begin("LH.RECORD", "DEL")
	e.Name("path", c.Path)
	e.fence(c.Fence)
	return true
}
