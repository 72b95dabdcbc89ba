package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Leases need two clocks that run at the same rate, not two that show the same time. So the rate is
// judged strictly, by two readings some time apart, and the date only for the sake of people who
// read logs.

// A clockReading is the server's date, and our own clocks at the same moment as well as that is
// known: halfway between the request and the answer.
type clockReading struct {
	server time.Time
	date   time.Time     // ours, in the middle
	at     time.Duration // by the clock that leases are counted with, in the middle
	blur   time.Duration // how far off that may be
}

// readServerClock reads the server's clock a few times and returns the quickest answer, which is
// the most exact one.
func readServerClock(ctx context.Context, c *cli.Conn) (best clockReading, err error) {
	for i := range 3 {
		r, err := readServerClockOnce(ctx, c)
		if err != nil {
			return best, err
		}
		if i == 0 || r.blur < best.blur {
			best = r
		}
	}
	return best, nil
}

// readServerClockOnce opens a watch for the hello that it begins with: that has the
// server's date in milliseconds, where HTTP has only seconds.
func readServerClockOnce(ctx context.Context, c *cli.Conn) (r clockReading, err error) {
	ctx, cancel := context.WithTimeout(ctx, cli.Patience)
	defer cancel()
	heard := false
	began, date := leaseClock(), time.Now()
	query := v1.WatchQuery{Once: true, Started: func(h v1.Hello) {
		trip := leaseClock() - began
		// The server cuts its date off below the millisecond.
		r = clockReading{server: h.Time.Time, date: date.Add(trip / 2), at: began + trip/2, blur: trip/2 +
			time.Millisecond}
		heard = true
		cancel()
	}}
	for _, err = range c.Watch(ctx, query) {
		if err != nil || heard {
			break
		}
	}
	if heard {
		return r, nil
	}
	if err == nil {
		err = errors.New("it sent no hello")
	}
	return r, err
}

// datesApart is how far two dates may be apart before somebody misreads a log.
const datesApart = time.Second

// judgeDate compares dates. No lease depends on them, so a difference is only a warning.
func judgeDate(r clockReading) finding {
	apart := r.date.Sub(r.server)
	f := fine("date", "this machine and the server agree within %s", exact(apart.Abs()+r.blur)).with("ahead_ms",
		milliseconds(apart))
	if apart.Abs()-r.blur <= datesApart {
		return f
	}
	f.Detail = fmt.Sprintf("this machine is %s %s the server", cli.Short(apart.Abs()),
		map[bool]string{true: "ahead of", false: "behind"}[apart > 0])
	return f.warn("no lease depends on dates, but what you read does: let NTP set the clocks of both")
}

// rateBound is how far a clock's rate may be off for the promises to hold. It is half of the
// client's margin of 1 %, since both clocks may be wrong in opposite directions.
const rateBound = 0.005

// judgeRate compares how fast two clocks run. A holder's deadline is right only if both run
// alike.
func judgeRate(before, after clockReading) finding {
	ours := after.at - before.at
	theirs := after.server.Sub(before.server)
	if ours <= 0 {
		return fine("clock rate", "this machine's clock did not move for the whole measurement").unfit("do not hold " +
			"leases here: ask the operator of the machine: it may be a virtual one that was paused")
	}
	off := float64(ours-theirs) / float64(ours)
	blur := float64(before.blur+after.blur) / float64(ours)
	f := fine("clock rate", "this machine's clock runs at the server's rate: %s off, measured to %s over %s",
		percent(off), percent(blur), cli.Short(ours))
	f = f.with("off_percent", 100*off).with("blur_percent", 100*blur)
	switch {
	// A measurement that is coarser than the bound proves nothing either way, so it is no problem
	// of the machine.
	case blur > rateBound:
		f.Detail = fmt.Sprintf("the measurement is too coarse to tell: %s off, measured to %s over %s", percent(off),
			percent(blur), cli.Short(ours))
		return f.warn("measure for longer: leasehold doctor --for 30s")
	// Only what is off beyond all doubt is a problem: nobody should be told to mend a good clock.
	case abs(off)-blur > rateBound:
		f.Detail = fmt.Sprintf("this machine's clock runs at another rate than the server's: %s off, measured to %s "+
			"over %s; at most 0.5%% is safe", percent(off), percent(blur), cli.Short(ours))
		return f.unfit("measure again with --for 30s, for a date may just have been set; if it stays so, do not " +
			"trust leases until the clocks are mended: see NTP on both, and the host of a virtual machine")
	}
	return f
}

func percent(x float64) string { return fmt.Sprintf("%.3g%%", 100*x) }

func abs(x float64) float64 { return max(x, -x) }

// A kernelClock is what the kernel knows about its own clock.
type kernelClock struct {
	known          bool
	err            error
	ppm            float64 // by which its rate is corrected
	unsynchronised bool
	slept          time.Duration // since it was started
}

// JudgeKernel judges how the kernel keeps its clock.
func JudgeKernel(k kernelClock) finding {
	switch {
	case !k.known:
		return fine("kernel", "this system does not say how its clock is kept")
	case k.err != nil:
		return fine("kernel", "the state of the clock cannot be read: %v", k.err).warn("run it where adjtimex is " +
			"allowed, or look on the host: timedatectl, chronyc tracking")
	}
	f := fine("kernel", "the clock is kept by NTP, and corrected by %.3g ppm", k.ppm).with("correction_ppm", k.ppm)
	if k.unsynchronised {
		f.Detail = fmt.Sprintf("the clock is not kept by NTP (unsynchronised); it is corrected by %.3g ppm", k.ppm)
	}
	if k.slept >= time.Second {
		f.Detail += fmt.Sprintf("; the machine slept for %s since it started, which leases do not", cli.Short(k.slept))
	}
	switch {
	case abs(k.ppm) > rateBound*1e6:
		return f.unfit("a correction of more than 5000 ppm is more than leases allow: see what set it (adjtimex " +
			"--print, chronyc tracking) and set it back")
	// No crystal is that bad; the correction itself is probably wrong.
	case abs(k.ppm) > 500:
		return f.warn("a healthy clock needs less than 500 ppm: see chronyc tracking or timedatectl timesync-status")
	case k.unsynchronised:
		return f.warn("leases need only the rate, which is compared with the server's; for dates that agree start " +
			"chrony or systemd-timesyncd, on the host if this is a container")
	}
	return f
}

// JudgeProxy judges whether requests to the server go through a proxy.
func JudgeProxy(server string, getenv func(string) string) finding {
	get := func(name, lower string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return getenv(lower)
	}
	settings := httpproxy.Config{HTTPProxy: get("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: get("HTTPS_PROXY", "https_proxy"), NoProxy: get("NO_PROXY", "no_proxy")}
	u, err := url.Parse(server)
	if err != nil {
		return fine("proxy", "none")
	}
	proxy, err := settings.ProxyFunc()(u)
	if err != nil || proxy == nil {
		return fine("proxy", "no proxy in front of the server")
	}
	return fine("proxy", "requests go through %s (HTTP_PROXY, HTTPS_PROXY)", proxy.Redacted()).warn(
		"a proxy may cut off waits and watches, and is one more thing that can fail: add " + u.Hostname() +
			" to NO_PROXY")
}
