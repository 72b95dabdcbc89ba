package kubernetes

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// Events. Electors tell Kubernetes who became the leader. Here the history of the lease says so, with more in it: so
// events are accepted, answered as they came, and dropped.

// An eventAnswer is the event that was sent.
type eventAnswer struct{ text []byte }

func (eventAnswer) onlyJSON() {}

func (eventAnswer) kind() (apiVersion, kind string) { return "v1", "Event" }

// Marshal returns nothing: events are answered in JSON.
func (eventAnswer) Marshal() []byte { return nil }

// JSON returns the event.
func (e eventAnswer) JSON() ([]byte, error) { return e.text, nil }

// postEvent takes an event. One in protobuf is answered with an empty one: nothing is read of it.
func (c *call) postEvent() error {
	text, contentType, err := c.body()
	if err != nil {
		return err
	}
	answered := []byte(`{"kind":"Event","apiVersion":"v1","metadata":{},"involvedObject":{},"source":{}}`)
	switch contentType {
	case object.Protobuf:
		if _, _, _, err := object.Open(text); err != nil {
			return badRequest("the event cannot be read: %v", err)
		}
	case jsonType, "":
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			return badRequest("the event cannot be read: %v", err)
		}
		answered = compact.Bytes()
	default:
		return unsupported()
	}
	c.send(http.StatusCreated, eventAnswer{answered})
	return nil
}

// listEvents answers with none: kubectl describe asks for them.
func (c *call) listEvents() error {
	if c.watches() {
		return c.unknown()
	}
	c.send(http.StatusOK, eventAnswer{[]byte(`{"kind":"EventList","apiVersion":"v1","metadata":{},"items":[]}`)})
	return nil
}
