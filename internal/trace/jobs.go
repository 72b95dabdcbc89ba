package trace

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
)

// A job is one piece of work, as a person or a program would bring it.
type job struct {
	id      string
	holder  string
	labels  leasehold.Labels
	at      time.Duration // when it arrives
	takes   time.Duration
	crash   time.Duration // after so much of it its host dies; 0: it does not
	pause   time.Duration // for which it does not renew, once, in the middle
	units   int
	renewed bool // it renews while it lives
}

// A sort is a sort of jobs that come again and again.
type sort struct {
	holder  string
	label   leasehold.Label
	takes   time.Duration // half of them
	spread  float64       // of the logarithm, of which nothing is beyond two
	units   int
	weekly  int
	renewed bool
	night   bool // programs start them, by day and by night
}

// sorts make a mix as small teams have it: many short jobs and a few that take most of the time. Two of them renew
// nothing: people with notebooks, and agents.
var sorts = []sort{
	{"eval", command("python eval.py"), 2 * time.Minute, 0.3, 1, 1200, true, true},
	{"ci", command("make test"), 12 * time.Minute, 0.4, 1, 400, true, false},
	{"tuner", command("python tune.py"), 90 * time.Minute, 0.5, 1, 140, true, true},
	{"trainer", command("torchrun"), 8 * time.Hour, 0.3, 2, 22, true, true},
	{"ann", leasehold.Label{Key: "kind", Value: "notebook"}, 40 * time.Minute, 0.5, 1, 150, false, false},
	{"agent", leasehold.Label{Key: "kind", Value: "review"}, 15 * time.Minute, 0.4, 1, 300, false, true},
}

func command(words string) leasehold.Label { return leasehold.Label{Key: "command", Value: words} }

const (
	crashes    = 0.03 // of all jobs
	pauses     = 0.05
	worstPause = 35 * time.Second // a suspended host, a network that is gone
)

// jobs returns the jobs of some weeks in the order of their arrival. The same seed makes the same jobs.
func jobs(seed uint64, weeks int) (list []job) {
	chance := rand.New(rand.NewPCG(seed, 0))
	for _, s := range sorts {
		for n := range s.weekly * weeks {
			takes := time.Duration(float64(s.takes) * math.Exp(s.spread*min(max(chance.NormFloat64(), -2), 2)))
			j := job{id: fmt.Sprintf("%s-%d", s.holder, n), holder: fmt.Sprintf("%s-%d", s.holder, n%7),
				labels: leasehold.Labels{s.label}, at: s.arrives(chance, weeks), takes: takes.Round(time.Second),
				units: s.units, renewed: s.renewed}
			if chance.Float64() < crashes {
				j.crash = max(time.Second, time.Duration(chance.Float64()*float64(takes)).Round(time.Second))
			} else if chance.Float64() < pauses {
				j.pause = time.Duration(chance.Float64() * float64(worstPause)).Round(time.Second)
			}
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b job) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	return list
}

// arrives returns a moment of the weeks: by day four times as likely as by night, or by day alone.
func (s *sort) arrives(chance *rand.Rand, weeks int) time.Duration {
	for {
		at := time.Duration(chance.Float64() * float64(weeks) * 7 * 24 * float64(time.Hour)).Round(time.Second)
		day := at%(24*time.Hour) >= 8*time.Hour && at%(24*time.Hour) < 20*time.Hour
		if day || s.night && chance.Float64() < 0.25 {
			return at
		}
	}
}
