package redis

import (
	"encoding/json"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A note is what Redis keeps of a request for others to read. No script looks into it.
type note struct {
	Holder string            `json:"holder"`
	Labels map[string]string `json:"labels,omitempty"`
	Reason string            `json:"reason,omitempty"`
	TTL    int64             `json:"ttl,omitempty"` // ms, of a waiter
}

func noteOf(r store.Request) string {
	n := note{Holder: r.Holder, Labels: store.LabelMap(r.Labels), Reason: r.Reason, TTL: r.TTL.Milliseconds()}
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(b)
}

// inJSON returns texts as the elements of a JSON array, which is how a mark has them.
func inJSON(texts ...string) string {
	b, err := json.Marshal(texts)
	if err != nil {
		panic(err) // strings
	}
	return string(b[1 : len(b)-1])
}

// readNote returns what it can: a note that somebody spoiled does not make a lease unreadable.
func readNote(text string) (n note) {
	_ = json.Unmarshal([]byte(text), &n)
	return n
}

func (n note) labels() leasehold.Labels { return store.LabelsOf(n.Labels) }
