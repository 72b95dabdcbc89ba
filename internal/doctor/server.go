package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/store"
)

// roundTrips measures how long the server takes to answer. The first answer is not counted, since
// it includes opening the connection.
func roundTrips(ctx context.Context, c *cli.Conn) (trips []time.Duration, theirs v1.Version, err error) {
	if theirs, err = c.Version(ctx); err != nil {
		return nil, theirs, err
	}
	for range tripCount {
		began := time.Now()
		if _, err = c.Version(ctx); err != nil {
			return nil, theirs, err
		}
		trips = append(trips, time.Since(began))
	}
	slices.Sort(trips)
	return trips, theirs, nil
}

// tripCount is how many times the server is asked for its version. Enough for a median that one
// slow answer does not move, and done within a second.
const tripCount = 20

// slowTrip is where people begin to notice a delay.
const slowTrip = 250 * time.Millisecond

// AskServer adds what only a server can tell. It stops early if the server cannot be reached or is
// not ready, since all further checks would fail for the same reason.
func (d *Diagnosis) AskServer(ctx context.Context, c *cli.Conn, length time.Duration, ours v1.Version) {
	if c.Store {
		d.Add(judgeStore(ctx, c))
		return
	}
	trips, theirs, err := roundTrips(ctx, c)
	d.Add(judgeTrips(store.Redact(c.Client.Server), trips, err))
	if err != nil {
		return
	}
	health := judgeHealth(c.Ready(ctx))
	d.Add(health)
	ready := health.Result != ResultProblem
	d.lookAtServers(ctx, c)
	d.lookAtCluster(ctx, c, ready)
	d.Add(judgeVersions(ours, theirs))
	if !ready {
		return
	}
	d.Add(judgeTTLs(ctx, c, trips))
	before, err := readServerClock(ctx, c)
	if err == nil {
		d.Add(judgeDate(before))
		cli.Pause(ctx, length)
		var after clockReading
		if after, err = readServerClock(ctx, c); err == nil {
			d.Add(judgeRate(before, after))
		}
	}
	if err != nil {
		d.Add(fine("clock rate", "the server's clock could not be read: %v", err).warn("see whether the server goes " +
			"on to answer: leasehold doctor"))
	}
}

// JudgeSettings says where the settings come from, or what is wrong with them.
func JudgeSettings(settings []config.Setting, err error) finding {
	if err != nil {
		return fine("settings", "%s", strings.ReplaceAll(err.Error(), "\n", "; ")).fail(leasehold.Invalid,
			"all settings: leasehold help configuration")
	}
	var parts []string
	for _, s := range cli.Shown(settings) {
		if s.Value == "" {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", s.Key, s.Value, s.Origin))
	}
	return fine("settings", "%s", strings.Join(parts, ", "))
}

// judgeStore asks another store than a server, twice because the first answer includes the connection.
func judgeStore(ctx context.Context, c *cli.Conn) finding {
	var trip time.Duration
	for range 2 {
		began := time.Now()
		if _, err := c.ResourcePage(ctx, v1.ResourceQuery{Limit: 1}); err != nil {
			return fine("store", "%v", err).fail(codeOf(err), "start it, or name another with --server or "+
				"LEASEHOLD_SERVER; then check for a firewall in between")
		}
		trip = time.Since(began)
	}
	return fine("store", "%s answers in %s; its clock is not checked", store.Redact(c.Client.Server), exact(trip))
}

// judgeTrips judges how fast the server answers, by the median: one slow answer says little.
func judgeTrips(server string, trips []time.Duration, err error) finding {
	if codeOf(err) == leasehold.Invalid { // the server was not even asked
		return fine("server", "%v", err).fail(leasehold.Invalid, "name a file with a token that you may read, with "+
			"--token-file or LEASEHOLD_TOKEN_FILE; or log in with leasehold login")
	}
	if err != nil {
		return fine("server", "%v", err).fail(codeOf(err), "start one with leasehold serve, or name another with "+
			"--server or LEASEHOLD_SERVER; then check for a firewall in between")
	}
	median, longest := trips[len(trips)/2], trips[len(trips)-1]
	f := fine("server", "%s answers in %s (median of %d), %s at most", server, exact(median), len(trips),
		exact(longest))
	f = f.with("median_ms", milliseconds(median)).with("longest_ms", milliseconds(longest))
	if median > slowTrip {
		return f.warn("use a server that is nearer, or TTLs of a minute and more")
	}
	return f
}

func codeOf(err error) leasehold.Code {
	var e *leasehold.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return leasehold.Unavailable
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// exact writes a duration that may be far below a second.
func exact(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// judgeHealth reports whether the server is ready, by its own checks.
func judgeHealth(checks []string, err error) finding {
	if err != nil {
		return fine("health", "%v", err).fail(codeOf(err), "a server that is starting or stopping is not ready for a "+
			"while; if that lasts, its log says why")
	}
	var warnings []string
	checks = slices.DeleteFunc(slices.Clone(checks), func(line string) bool {
		text, is := strings.CutPrefix(line, v1.ReadyWarning)
		if is && !strings.HasPrefix(text, "quarantine: ") { // which is a finding of its own
			warnings = append(warnings, text)
		}
		return is
	})
	if len(warnings) > 0 {
		return fine("health", "ready, but %s", strings.Join(warnings, "; ")).warn("the server's log says more")
	}
	return fine("health", "ready: %s", strings.Join(checks, ", "))
}

// judgeVersions compares versions. Different ones work together, so that is only a warning.
func judgeVersions(ours, theirs v1.Version) finding {
	f := fine("version", "this program and the server are %s (commit %s)", ours.Version, ours.Commit)
	if ours.Version == theirs.Version && ours.Commit == theirs.Commit {
		return f
	}
	f.Detail = fmt.Sprintf("this program is %s, the server %s", cli.VersionLine(ours), cli.VersionLine(theirs))
	return f.warn("both speak /v1 and understand each other; for the same words and flags on both sides install the " +
		"same version")
}

// leastTripsInTTL is how many of the slowest round trips should fit into a TTL. A renewal is tried
// at a third of it; the rest should suffice for several attempts that are slow.
const leastTripsInTTL = 20

// judgeTTLs compares the shortest TTL that is in use, or that is the default
// somewhere, with the slowest of the round trips.
func judgeTTLs(ctx context.Context, c *cli.Conn, trips []time.Duration) finding {
	shortest, whose, err := shortestTTL(ctx, c)
	if err != nil {
		f := fine("ttl", "the leases could not be read: %v", err)
		if errors.Is(err, leasehold.ErrDenied) {
			return f.warn("prove who you are with leasehold login, and see what you may do: leasehold access whoami")
		}
		return f.warn("look for yourself: leasehold list")
	}
	return judgeTTL(shortest, whose, trips[len(trips)-1])
}

// judgeTTL judges whether the shortest TTL leaves time for several tries of a renewal.
func judgeTTL(shortest time.Duration, whose string, trip time.Duration) finding {
	if whose == "" {
		return fine("ttl", "no lease has one now; shorter than %s would be too short from here",
			exact(leastTripsInTTL*trip))
	}
	f := fine("ttl", "the shortest is %s, %s; the slowest answer took %s", cli.Short(shortest), cli.Printable(whose),
		exact(trip)).with("shortest_ms", milliseconds(shortest))
	if shortest < leastTripsInTTL*trip {
		return f.warn("one more slow answer and the lease is lost: make it " + exact(leastTripsInTTL*trip) +
			" or longer")
	}
	return f
}

// shortestTTL returns the shortest TTL among one page of leases and one of definitions. That is a
// sample: reading everything could load a large cluster.
func shortestTTL(ctx context.Context, c *cli.Conn) (shortest time.Duration, whose string, err error) {
	note := func(ttl *v1.Duration, of string) {
		if ttl != nil && (whose == "" || time.Duration(*ttl) < shortest) {
			shortest, whose = time.Duration(*ttl), of
		}
	}
	page, err := c.ResourcePage(ctx, v1.ResourceQuery{Limit: v1.MaxLimit})
	if err != nil {
		return 0, "", err
	}
	for _, r := range page.Items {
		for _, l := range r.Holders {
			note(l.TTL, "of "+l.Holder+" on "+r.Resource)
		}
	}
	definitions, err := c.Definitions(ctx, v1.DefinitionQuery{Limit: v1.MaxLimit})
	if err != nil {
		return 0, "", err
	}
	for _, d := range definitions.Items {
		note(d.DefaultTTL, "the default of "+d.Path)
	}
	return shortest, whose, nil
}
