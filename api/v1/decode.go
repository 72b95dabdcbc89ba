package v1

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/pipeline"
	"github.com/leasehold/leasehold/internal/resp/words"
)

// A decoder reads answers. Fields that it does not know are those of a newer server.
type decoder struct{ words.Decoder }

// Take reads the reply to a command.
func (x *exchange) Take(v *resp.Value) (follows bool, err error) {
	x.decoder = decoder{words.Decoder{Known: x.Texts}}
	switch answer := x.answer.(type) {
	case *Nothing:
		return false, nil
	case *Lease:
		if x.Tag != "" && isWaiting(v) {
			return true, nil
		}
		*answer = Lease{}
		x.lease(v, answer)
		x.fits(answer.ID)
	case *Session:
		*answer = Session{}
		x.session(v, answer)
		x.fits(answer.ID)
	case *Resource:
		*answer = Resource{}
		x.resource(v, answer)
	case *Record:
		*answer = Record{}
		x.record(v, answer)
	case *Deleted:
		*answer = Deleted{}
		x.deleted(v, answer)
	default:
		return false, fmt.Errorf("no command is answered by a %T", answer)
	}
	return false, x.Err
}

// fits makes sure that an answer is about an id of the command. One that is not belongs to another command.
func (x *exchange) fits(id string) {
	if x.Err == nil && x.Named && !slices.Contains(x.Texts, id) {
		x.Err = fmt.Errorf("%w: it is about %q", pipeline.ErrOutOfStep, id)
	}
}

// isWaiting reports whether a reply says only that the grant is to follow.
func isWaiting(v *resp.Value) bool {
	for i := 0; i+1 < len(v.Items); i += 2 {
		if string(v.Items[i].Text) == "waiting" {
			return v.Items[i+1].Bool()
		}
	}
	return false
}

func (d *decoder) moment(v *resp.Value) Time { return Time{d.Moment(v)} }

func (d *decoder) someMoment(v *resp.Value) *Time {
	if v.IsNull() {
		return nil
	}
	t := d.moment(v)
	return &t
}

func (d *decoder) duration(v *resp.Value) Duration {
	span, err := ParseDuration(string(v.Text))
	if err != nil {
		d.Fail("%v", err)
	}
	return Duration(span)
}

func (d *decoder) someDuration(v *resp.Value) *Duration {
	if v.IsNull() {
		return nil
	}
	span := d.duration(v)
	return &span
}
