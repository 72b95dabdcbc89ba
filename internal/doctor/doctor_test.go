package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestDoctorJudges(t *testing.T) {
	const ms = time.Millisecond
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	reading := func(server, at, blur time.Duration) clockReading {
		return clockReading{server: begin.Add(server), date: begin.Add(at), at: at, blur: blur}
	}
	zero := reading(0, 0, ms)
	unreachable := &leasehold.Error{Code: leasehold.Unavailable, Message: "cannot reach the server"}
	none := func(string) string { return "" }
	env := func(name, value string) func(string) string {
		return func(asked string) string {
			if asked == name {
				return value
			}
			return ""
		}
	}
	release := v1.Version{Version: "v1.2.0", Commit: "abc", Go: "go1.26"}
	for _, c := range []struct {
		name   string
		got    finding
		result string
		words  string // in the detail or the advice
		code   int
	}{
		{"the same rate", judgeRate(zero, reading(2*time.Second, 2*time.Second, ms)), "ok",
			"0% off, measured to 0.1% over 2s", 0},
		{"0.4 % is allowed", judgeRate(zero, reading(1992*ms, 2*time.Second, ms)), "ok", "0.4% off", 0},
		{"0.55 % may be 0.45 %", judgeRate(zero, reading(1989*ms, 2*time.Second, ms)), "ok", "0.55% off", 0},
		{"1 % fast", judgeRate(zero, reading(1980*ms, 2*time.Second, ms)), "problem", "1% off", 71},
		{"1 % slow", judgeRate(zero, reading(2020*ms, 2*time.Second, ms)), "problem", "-1% off", 71},
		{"a slow line", judgeRate(zero, reading(2*time.Second, 2*time.Second, 100*ms)), "warning",
			"leasehold doctor --for 30s", 0},
		{"a clock that stands still", judgeRate(zero, reading(2*time.Second, 0, ms)), "problem", "did not move", 71},
		{"dates agree", judgeDate(reading(0, 20*ms, ms)), "ok", "agree within 21ms", 0},
		{"ahead", judgeDate(reading(0, time.Minute, ms)), "warning", "1m ahead of the server", 0},
		{"behind", judgeDate(reading(time.Hour, 0, ms)), "warning", "1h behind the server", 0},
		{"far away, perhaps", judgeDate(reading(0, 1500*ms, time.Second)), "ok", "agree within", 0},
		{"kept by NTP", JudgeKernel(kernelClock{known: true, ppm: -12.5}), "ok", "corrected by -12.5 ppm", 0},
		{"not kept", JudgeKernel(kernelClock{known: true, unsynchronised: true}), "warning", "chrony", 0},
		{"a poor crystal", JudgeKernel(kernelClock{known: true, ppm: 900}), "warning", "less than 500 ppm", 0},
		{"a wrong tick", JudgeKernel(kernelClock{known: true, ppm: -10_000}), "problem", "more than leases allow", 71},
		{"it slept", JudgeKernel(kernelClock{known: true, slept: 3 * time.Hour}), "ok", "slept for 3h", 0},
		{"no adjtimex", JudgeKernel(kernelClock{known: true, err: errors.New("not allowed")}), "warning", "not allowed",
			0},
		{"not Linux", JudgeKernel(kernelClock{}), "ok", "does not say", 0},
		{"near", judgeTrips("s", []time.Duration{300 * time.Microsecond, ms, 2 * ms}, nil), "ok",
			"s answers in 1ms (median of 3), 2ms at most", 0},
		{"far", judgeTrips("s", []time.Duration{time.Second}, nil), "warning", "nearer", 0},
		{"nobody there", judgeTrips("s", nil, unreachable), "problem", "leasehold serve", 69},
		{"not let in", judgeTrips("s", nil, leasehold.ErrDenied), "problem", "", 77},
		{"ready", judgeHealth([]string{"serving ok", "engine ok"}, nil), "ok", "ready: serving ok, engine ok", 0},
		{"a warning", judgeHealth([]string{"serving ok", "warning: 2 tokens end within 7 days"}, nil), "warning",
			"ready, but 2 tokens end within 7 days", 0},
		{"in quarantine", judgeHealth([]string{"serving ok", "warning: quarantine: nothing"}, nil), "ok", "ready: serving ok", 0},
		{"not ready", judgeHealth(nil, unreachable), "problem", "its log says why", 69},
		{"one version", judgeVersions(release, release), "ok", "v1.2.0", 0},
		{"two versions", judgeVersions(release, v1.Version{Version: "v1.1.0"}), "warning", "the server v1.1.0", 0},
		{"a long TTL", judgeTTL(30*time.Second, "of ann on a", ms), "ok", "the shortest is 30s, of ann on a", 0},
		{"a short TTL", judgeTTL(time.Second, "of ann on a", 100*ms), "warning", "make it 2s or longer", 0},
		{"no TTL", judgeTTL(0, "", ms), "ok", "shorter than 20ms", 0},
		{"no proxy", JudgeProxy("http://leases.example:4653", none), "ok", "no proxy", 0},
		{"a proxy", JudgeProxy("http://leases.example:4653", env("HTTP_PROXY", "http://me:secret@proxy:3128")),
			"warning", "add leases.example to NO_PROXY", 0},
		{"a proxy in small letters", JudgeProxy("https://leases.example", env("https_proxy", "http://proxy:3128")),
			"warning", "through http://proxy:3128", 0},
		{"a proxy for others", JudgeProxy("http://127.0.0.1:4653", env("HTTP_PROXY", "http://proxy:3128")), "ok",
			"no proxy", 0},
		{"a wrong setting", JudgeSettings(nil, errors.New("one\ntwo")), "problem", "one; two", 64},
	} {
		if c.got.Result != c.result || !strings.Contains(c.got.Detail+" "+c.got.Advice, c.words) ||
			cli.ExitCode(c.got.err) != c.code {
			t.Errorf("%s: got %+v (code %d)", c.name, c.got, cli.ExitCode(c.got.err))
		}
		if (c.got.Result == ResultOK) != (c.got.Advice == "") {
			t.Errorf("%s: advice %q for what is %s", c.name, c.got.Advice, c.got.Result)
		}
		if strings.Contains(c.got.Detail, "secret") {
			t.Errorf("%s shows a password: %s", c.name, c.got.Detail)
		}
	}
}

// The worst finding is the diagnosis, and the first problem the exit code.
func TestDoctorsDiagnosis(t *testing.T) {
	d := &Diagnosis{Result: ResultOK}
	d.Add(fine("a", "fine"))
	d.Add(fine("b", "hm").warn("look"))
	if d.Result != ResultWarning || d.Problem() != nil {
		t.Errorf("got %+v", d)
	}
	d.Add(fine("c", "bad").unfit("mend it"))
	d.Add(fine("d", "bad too").fail(leasehold.Unavailable, "mend it"))
	d.Add(fine("e", "hm").warn("look"))
	if d.Result != ResultProblem || cli.ExitCode(d.Problem()) != cli.ExitUnfit ||
		cli.Problem(d.Problem()).Code != "unfit" {
		t.Errorf("got %+v, %v", d, d.Problem())
	}
}

// Each thing that can be wrong is said, with what to do.
func TestJudgeCluster(t *testing.T) {
	c := &cli.Conn{Cmd: &cobra.Command{}}
	server := func(name string, change func(*v1.Server)) v1.Server {
		s := v1.Server{Name: name, Voter: true, Reachable: true, Answered: true, Applied: 10000, Version: "1"}
		if change != nil {
			change(&s)
		}
		return s
	}
	for _, test := range []struct {
		name        string
		leader      string
		servers     []v1.Server
		state       string
		wrong, note string
	}{
		{"alone", "n1", []v1.Server{server("n1", nil)}, "single server, no redundancy", "", ""},
		{"two", "n1", []v1.Server{server("n1", nil), server("n2", nil)}, "2 of 2 voters are up; none may fail now", "",
			"with 2 voters nothing works when either fails"},
		{"four", "n1", []v1.Server{server("n1", nil), server("n2", nil), server("n3", nil), server("n4", nil)},
			"4 of 4 voters are up; 1 may fail", "", "4 voters survive no more failures than 3"},
		{"election", "", []v1.Server{server("n1", nil), server("n2", nil), server("n3", nil)}, "they are electing",
			"if nobody leads for long", ""},
		{"learner", "n1", []v1.Server{server("n1", nil), server("n2",
			func(s *v1.Server) { s.Voter, s.Applied = false, 9000 })}, "1 of 1", "", "n2 is catching up"},
		{"slow learner", "n1", []v1.Server{server("n1", nil),
			server("n2", func(s *v1.Server) {
				s.Voter, s.Applied = false,
					10
			})}, "1 of 1", "n2 is behind by 9990 entries", ""},
		{"learner that is not there", "n1", []v1.Server{server("n1", nil),
			server("n2", func(s *v1.Server) {
				s.Voter, s.Reachable = false, false
			})}, "1 of 1", "n2 was added and does not run", ""},
		{"slow voter", "n1", []v1.Server{server("n1", nil), server("n2", func(s *v1.Server) { s.Applied = 10 })},
			"2 of 2", "n2 is behind by 9990 entries", "with 2 voters"},
		{"ahead by a moment", "n1", []v1.Server{server("n1", nil),
			server("n2", func(s *v1.Server) { s.Applied = 10001 }), server("n3", nil)}, "3 of 3", "", ""},
		{"leader that just failed", "n1", []v1.Server{server("n1", func(s *v1.Server) { s.Reachable = false }),
			server("n2", nil), server("n3", nil)}, "2 of 3", "n1, which led, is away: the others elect", ""},
		{"no answer", "n1", []v1.Server{server("n1", nil), server("n2",
			func(s *v1.Server) { s.Answered, s.HeardBy, s.HeardMS = false, "n3", new(int64(200)) }), server("n3",
			nil)}, "3 of 3 voters were heard from in the last seconds; no answer from n2",
			"n2 did not answer n1 in time, but n3 heard from it 200ms ago", ""},
		{"low room", "n1", []v1.Server{server("n1", func(s *v1.Server) { s.LowRoom = true })}, "single server",
			"the disk of n1 is nearly full", ""},
		{"learner that died of it", "n1", []v1.Server{server("n1", nil),
			server("n2", func(s *v1.Server) { s.Voter, s.Reachable, s.LowRoom = false, false, true })}, "1 of 1",
			"its disk is nearly full: make room there, then start it", ""},
		{"versions", "n1", []v1.Server{server("n1", nil), server("n2", func(s *v1.Server) { s.Version = "2" }),
			server("n3", nil)}, "3 of 3", "", "2 versions"},
	} {
		found := JudgeCluster(v1.Cluster{Self: "n1", Leader: test.leader, Servers: test.servers})
		if !strings.Contains(found.State, test.state) {
			t.Errorf("%s: the state is %q", test.name, found.State)
		}
		for kind, lines := range map[string][]func(*cli.Conn) string{test.wrong: found.Wrong, test.note: found.Notes} {
			if (kind == "") != (len(lines) == 0) || kind != "" &&
				(len(lines) != 1 || !strings.Contains(lines[0](c), kind)) {
				var texts []string
				for _, line := range lines {
					texts = append(texts, line(c))
				}
				t.Errorf("%s: found %q, want %q", test.name, texts, kind)
			}
		}
	}
}
