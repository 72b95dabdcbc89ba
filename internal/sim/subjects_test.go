package sim

import (
	"testing"
	"time"
)

// Names of areas, tasks, units of pools, reservations, and several resources at once are asked for, each in a world of
// its own, and all in one, where everything goes wrong.
func TestSubjects(t *testing.T) {
	for _, world := range []struct {
		name     string
		subjects Subjects
		clients  int
		sees     []string
	}{
		{"areas", areas, 6, []string{"grants in areas", "several granted at once"}},
		{"tasks", tasks, 6, []string{"tasks put", "tasks claimed", "tasks done", "tasks of lost workers"}},
		{"pools", pooled, 14, []string{"several granted at once", "units borrowed"}},
		{"reservations", booked, 6, []string{"reservations made", "reservations begun", "reservations claimed",
			"reservations cancelled"}},
		{"all", mixed, 8, []string{"grants in areas", "tasks claimed", "reservations begun", "several granted at once"}},
	} {
		t.Run(world.name, func(t *testing.T) {
			counts := clean(t, Config{
				Nodes: 3, Clients: world.clients, Watchers: 1, Length: 6 * time.Minute, Faults: Everything,
				Subjects: world.subjects,
			}, max(1, *seeds/8))
			for _, what := range world.sees {
				if counts[what] == 0 {
					t.Errorf("%s: none", what)
				}
			}
		})
	}
}

// All of it, while servers are lost for good and a cluster goes on from a backup.
func TestSubjectsRestored(t *testing.T) {
	clean(t, Config{
		Nodes: 3, Clients: 6, Watchers: 1, Length: 6 * time.Minute, Faults: restores, Disasters: disasters, Subjects: mixed,
	}, max(1, *seeds/8))
}

var (
	areas  = Subjects{Areas: 80}
	tasks  = Subjects{Tasks: 80}
	pooled = Subjects{Pools: 90}
	booked = Subjects{Reservations: 80}
	some   = Subjects{Areas: 5, Tasks: 5, Pools: 5, Reservations: 5, Together: 5}
	mixed  = Subjects{Areas: 20, Tasks: 20, Pools: 20, Reservations: 20, Together: 10}
)
