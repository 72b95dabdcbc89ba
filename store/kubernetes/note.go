package kubernetes

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A note says who holds a resource, or held it last.
type note struct {
	ID     string            `json:"id"`
	Holder string            `json:"holder,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Reason string            `json:"reason,omitempty"`
	TTL    int64             `json:"ttl"` // seconds
	Token  leasehold.Token   `json:"token"`
	Since  time.Time         `json:"since"` // by the clock of who asked, for display
	Value  []byte            `json:"value,omitempty"`
	Ended  *ended            `json:"ended,omitempty"`
}

// ended is how the lease of a note ended.
type ended struct {
	How    how       `json:"how"`
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

func newNote(r *store.Request, token leasehold.Token) note {
	return note{ID: r.ID, Holder: r.Holder, Reason: r.Reason, Value: r.Value, Token: token,
		Labels: store.LabelMap(r.Labels), TTL: int64(r.TTL / time.Second),
		Since: time.Now().UTC().Truncate(time.Millisecond)}
}

// identity is what the spec has as the holder's identity while the lease lives: a name and what makes
// it unique, as an elector's identity has.
func (n *note) identity() string {
	if n.Holder == "" {
		return n.ID
	}
	return n.Holder + "_" + n.ID
}

func (n *note) ttl() time.Duration { return time.Duration(n.TTL) * time.Second }

// noteOf reads the note of a Lease; nil if there is none, or if it is not ours.
func (o *object) noteOf() *note {
	var n note
	if json.Unmarshal([]byte(o.Meta.Annotations[keyLease]), &n) != nil || n.ID == "" {
		return nil
	}
	return &n
}

// current returns the note of the lease that is held; nil if there is none, or if it is an elector's.
func (o *object) current() *note {
	n := o.noteOf()
	if n == nil || n.Ended != nil || n.identity() != o.Spec.HolderIdentity {
		return nil
	}
	return n
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has strings, numbers and times only
	}
	return string(text)
}

// how a lease ended, as it is written.
type how string

const (
	wasReleased how = "r"
	wasExpired  how = "t"
	wasBroken   how = "b"
)

func (h how) public() leasehold.How {
	switch h {
	case wasReleased:
		return leasehold.Released
	case wasBroken:
		return leasehold.ByBreak
	}
	return leasehold.ByTTL
}

// Marks are as short as can be, since each write of the Lease has all of them: the hash of an id, how it
// ended, and when, in seconds of the API server's clock.
const (
	markKeep  = 15 * time.Minute // longer than promised, as clocks of API servers differ
	markMost  = 2000             // 32 KiB
	markHash  = 8
	breakMost = 4
)

type mark struct {
	hash string
	how  how
	at   int64
}

func hashID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:markHash]
}

// marks reads the marks of a Lease. What is not a mark was written by somebody else.
func (o *object) marks() (list []mark) {
	for word := range strings.FieldsSeq(o.Meta.Annotations[keyMarks]) {
		if len(word) < markHash+2 {
			continue
		}
		at, err := strconv.ParseInt(word[markHash+1:], 36, 64)
		if err == nil {
			list = append(list, mark{word[:markHash], how(word[markHash : markHash+1]), at})
		}
	}
	return list
}

// marked returns the mark of an id; nil if there is none.
func (o *object) marked(id string) *mark {
	hash := hashID(id)
	for _, m := range o.marks() {
		if m.hash == hash {
			return &m
		}
	}
	return nil
}

// mark adds the mark of an id, and drops the old ones.
func (o *object) mark(id string, h how, now time.Time) {
	list := append(o.marks(), mark{hashID(id), h, now.Unix()})
	list = slices.DeleteFunc(list, func(m mark) bool { return m.at < now.Add(-markKeep).Unix() })
	list = list[max(0, len(list)-markMost):]
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.hash + string(m.how) + strconv.FormatInt(m.at, 36) + " ")
	}
	o.set(keyMarks, strings.TrimSuffix(b.String(), " "))
}

// A break remembers what a mark has no room for.
type broken struct {
	ID    string          `json:"id"`
	Token leasehold.Token `json:"token"`
	ended
}

func (o *object) breaks() (list []broken) {
	_ = json.Unmarshal([]byte(o.Meta.Annotations[keyBroken]), &list) // not ours: there are none
	return list
}

// remember adds a break, and drops the old ones.
func (o *object) remember(b broken) {
	list := slices.DeleteFunc(o.breaks(), func(old broken) bool { return b.At.Sub(old.At) > markKeep })
	list = append(list, b)
	o.set(keyBroken, encode(list[max(0, len(list)-breakMost):]))
}

// ending returns how the lease of an id ended, given that it does not hold the Lease; nil if nothing is
// known about the id.
func (o *object) ending(id string) *leasehold.Ending {
	for _, b := range o.breaks() {
		if b.ID == id {
			return &leasehold.Ending{
				ID: id, Token: b.Token, How: leasehold.ByBreak, By: b.By, Reason: b.Reason, At: b.At,
			}
		}
	}
	if n := o.noteOf(); n != nil && n.ID == id {
		return n.ending()
	}
	if m := o.marked(id); m != nil {
		return &leasehold.Ending{ID: id, How: m.how.public(), At: time.Unix(m.at, 0)}
	}
	return nil
}

// ending returns how the lease of a note ended. If it does not say, somebody else took the Lease.
func (n *note) ending() *leasehold.Ending {
	e := &leasehold.Ending{ID: n.ID, Holder: n.Holder, Token: n.Token, How: leasehold.ByTTL, TTL: n.ttl()}
	if n.Ended != nil {
		e.How, e.At, e.By, e.Reason = n.Ended.How.public(), n.Ended.At, n.Ended.By, n.Ended.Reason
	}
	return e
}
