package object

import (
	"bytes"
	"fmt"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxOwners is how many owners an object may have. An empty one takes two bytes of a message, and a hundred in memory.
const maxOwners = 1024

var errOwners = fmt.Errorf("the object has more than %d owners", maxOwners)

// A field of a protobuf message, as it stands there. A field that stands several times counts as it stands last.
type field struct {
	number protowire.Number
	text   []byte // of a text, bytes or a message
	n      uint64 // of a number
}

// eachField calls fn with the fields of a message that are texts, messages or whole numbers. Others are passed over,
// as are those that fn does not know.
func eachField(b []byte, fn func(field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errProtobuf
		}
		b = b[n:]
		f := field{number: number}
		switch kind {
		case protowire.BytesType:
			f.text, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.n, n = protowire.ConsumeVarint(b)
		default:
			if n = protowire.ConsumeFieldValue(number, kind, b); n >= 0 {
				b = b[n:]
				continue
			}
		}
		if n < 0 {
			return errProtobuf
		}
		b = b[n:]
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

// Open returns the message in an envelope, and what the envelope calls it.
func Open(b []byte) (apiVersion, kind string, message []byte, err error) {
	b, found := bytes.CutPrefix(b, []byte(magic))
	if !found {
		return "", "", nil, errProtobuf
	}
	err = eachField(b, func(f field) error {
		switch f.number {
		case 1:
			return eachField(f.text, func(f field) error {
				switch f.number {
				case 1:
					apiVersion = string(f.text)
				case 2:
					kind = string(f.text)
				}
				return nil
			})
		case 2:
			message = f.text
		}
		return nil
	})
	return apiVersion, kind, message, err
}

// Unmarshal reads an object in protobuf, without an envelope. What it does not know is not kept.
func (l *Lease) Unmarshal(b []byte) error {
	*l = Lease{}
	return eachField(b, func(f field) error {
		switch f.number {
		case 1:
			return l.Meta.unmarshal(f.text)
		case 2:
			return l.Spec.unmarshal(f.text)
		}
		return nil
	})
}

// unmarshal reads an ObjectMeta.
func (m *Meta) unmarshal(b []byte) error {
	texts := [...]*string{1: &m.Name, 2: &m.GenerateName, 3: &m.Namespace, 5: &m.UID, 6: &m.ResourceVersion}
	return eachField(b, func(f field) (err error) {
		switch f.number {
		case 1, 2, 3, 5, 6:
			*texts[f.number], err = f.string()
		case 7:
			m.Generation = int64(f.n)
		case 8:
			m.Created.Time, err = f.time()
		case 9:
			m.Deleted.Time, err = f.time()
		case 10:
			m.GraceSeconds = new(int64(f.n))
		case 11:
			err = f.entry(&m.Labels)
		case 12:
			err = f.entry(&m.Annotations)
		case 13:
			var o Owner
			if err = o.unmarshal(f.text); len(m.Owners) == maxOwners {
				err = errOwners
			}
			m.Owners = append(m.Owners, o)
		case 14:
			var name string
			name, err = f.string()
			m.Finalizers = append(m.Finalizers, name)
		}
		return err
	})
}

// unmarshal reads an OwnerReference.
func (o *Owner) unmarshal(b []byte) error {
	return eachField(b, func(f field) (err error) {
		switch f.number {
		case 1:
			o.Kind, err = f.string()
		case 3:
			o.Name, err = f.string()
		case 4:
			o.UID, err = f.string()
		case 5:
			o.APIVersion, err = f.string()
		case 6:
			o.Controller = new(protowire.DecodeBool(f.n))
		case 7:
			o.BlockOwnerDeletion = new(protowire.DecodeBool(f.n))
		}
		return err
	})
}

// unmarshal reads a LeaseSpec.
func (s *Spec) unmarshal(b []byte) error {
	return eachField(b, func(f field) (err error) {
		switch f.number {
		case 1:
			s.Holder, err = f.optional()
		case 2:
			s.DurationSeconds = new(int32(f.n))
		case 3:
			s.AcquireTime.Time, err = f.time()
		case 4:
			s.RenewTime.Time, err = f.time()
		case 5:
			s.Transitions = new(int32(f.n))
		case 6:
			s.Strategy, err = f.optional()
		case 7:
			s.PreferredHolder, err = f.optional()
		}
		return err
	})
}

// string returns a text, which has to be UTF-8: JSON could not show another.
func (f field) string() (string, error) {
	if !utf8.Valid(f.text) {
		return "", errProtobuf
	}
	return string(f.text), nil
}

// optional returns a text that is there, if it is empty or not.
func (f field) optional() (*string, error) {
	s, err := f.string()
	return &s, err
}

// entry puts one entry in a map of texts.
func (f field) entry(into *map[string]string) error {
	var key, value string
	err := eachField(f.text, func(f field) (err error) {
		switch f.number {
		case 1:
			key, err = f.string()
		case 2:
			value, err = f.string()
		}
		return err
	})
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[key] = value
	return err
}

// time returns a moment. An empty message is no time at all, and one with zeros the beginning of 1970.
func (f field) time() (time.Time, error) {
	if len(f.text) == 0 {
		return time.Time{}, nil
	}
	var seconds, nanos int64
	err := eachField(f.text, func(f field) error {
		switch f.number {
		case 1:
			seconds = int64(f.n)
		case 2:
			nanos = int64(int32(f.n))
		}
		return nil
	})
	t := time.Unix(seconds, nanos).UTC()
	if err != nil || nanos < 0 || nanos >= int64(time.Second) || t.Before(minTime) || !t.Before(maxTime) {
		return time.Time{}, errProtobuf
	}
	return t, nil
}

// DeleteOptions reads what the options of a delete say, in protobuf without an envelope: which object is meant, and
// whether the delete is only tried.
func DeleteOptions(b []byte) (uid, resourceVersion *string, dryRun []string, err error) {
	err = eachField(b, func(f field) error {
		switch f.number {
		case 2:
			return eachField(f.text, func(f field) (err error) {
				switch f.number {
				case 1:
					uid, err = f.optional()
				case 2:
					resourceVersion, err = f.optional()
				}
				return err
			})
		case 5:
			dryRun = append(dryRun, string(f.text))
		}
		return nil
	})
	return uid, resourceVersion, dryRun, err
}
