package kubernetes

import (
	"strconv"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Marks are kept for ten minutes at least, and never need more room than a Lease has.
func TestMarks(t *testing.T) {
	var o object
	o.mark("early", wasReleased, testTime)
	o.mark("later", wasBroken, testTime.Add(time.Minute))
	at := testTime.Add(10 * time.Minute)
	o.mark("now", wasExpired, at)
	for id, how := range map[string]leasehold.How{
		"early": leasehold.Released, "later": leasehold.ByBreak, "now": leasehold.ByTTL, "never": 0,
	} {
		if e := o.ending(id); how == 0 && e != nil || how != 0 && (e == nil || e.How != how) {
			t.Errorf("%s ended as %+v, want %v", id, e, how)
		}
	}
	o.mark("much later", wasReleased, testTime.Add(markKeep+time.Second))
	if o.ending("early") != nil || o.ending("later") == nil {
		t.Errorf("after %v the marks are %q", markKeep, o.Meta.Annotations[keyMarks])
	}
	for i := range markMost + 10 {
		o.mark(strconv.Itoa(i), wasReleased, at)
	}
	if size := len(o.Meta.Annotations[keyMarks]); size > 32<<10 {
		t.Errorf("%d marks have %d bytes", markMost, size)
	}
	if o.ending(strconv.Itoa(markMost)) == nil {
		t.Error("the newest mark was dropped")
	}
}

// Two renewals never look the same, also to an elector, which sees whole seconds.
func TestTimesOfRenewalsGrow(t *testing.T) {
	ahead := time.Now().UTC().Add(time.Hour).Truncate(time.Microsecond)
	s := spec{RenewTime: ahead.Format(microTime)}
	one, two := s.nextTime(), s.nextTime()
	if least := ahead.Add(time.Second).Format(microTime); one < least || one == two {
		t.Errorf("after %s the next are %s and %s: want different ones from %s on", s.RenewTime, one, two, least)
	}
	for _, odd := range []string{"", "yesterday", "9999-12-31T23:59:59.999999Z"} {
		s := spec{RenewTime: odd}
		if _, err := time.Parse(microTime, s.nextTime()); err != nil || s.nextTime() == odd {
			t.Errorf("after %q the next is %q, %v", odd, s.nextTime(), err)
		}
	}
}

func TestTokens(t *testing.T) {
	for _, test := range []struct {
		version, last string
		floor, want   leasehold.Token
	}{
		{"238", "", 0, 238}, {"238", "100", 0, 238}, {"238", "238", 0, 239}, {"238", "500", 0, 501},
		{"238", "5", 999, 1000}, {"238", "x", 0, 238}, {"", "", 0, 0}, {"a1", "1", 0, 0},
		{"9007199254740992", "", 0, 0}, {"1", "9007199254740991", 0, 0}, {"1", "", leasehold.MaxToken, 0},
		{"1", "18446744073709551615", 0, 0},
	} {
		o := object{Meta: metadata{ResourceVersion: test.version}}
		o.set(keyToken, test.last)
		if got, err := o.nextToken(test.floor); got != test.want || (err == nil) != (got != 0) {
			t.Errorf("version %q, last %q, floor %d: token %d, %v; want %d", test.version, test.last, test.floor, got,
				err, test.want)
		}
	}
}
