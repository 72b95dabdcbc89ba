package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// A scene makes the placeholders of a command's examples true. The zero scene is fine for
// many: prod/deploy is held by ann, and bob waits for it.
type scene struct {
	empty   bool              // nobody holds anything
	before  []string          // commands, before each example
	replace map[string]string // what the example says, and what is true here
	follows bool              // it goes on until it is stopped
	env     []string
	code    int // it ends with, if not 0
}

// unacknowledged is the scene of a resource that rests after an unclean end.
var unacknowledged = scene{before: []string{
	"define db/migrate --unclean acknowledge", "acquire db/migrate --ttl 1h --holder ann",
	"break db/migrate --now --yes --reason test"}}

// pooled is the scene of two pools.
var pooled = scene{before: []string{"pool create gpu --from nvidia-smi", "pool create phones --from phones.txt"}}

// booked is the scene of two reservations.
var booked = scene{before: []string{"reserve staging --for 1h --id demo",
	"reserve bench --at 14:00 --for 1h --every weekdays --zone UTC --id daily"}}

var scenes = map[string]scene{
	"acknowledge":        unacknowledged,
	"alarms":             unacknowledged,
	"alarms acknowledge": unacknowledged,
	"acquire":            {empty: true, before: []string{"define gpu/pool --capacity 8"}},
	"advise":             {empty: true},
	"ask":                {before: []string{"acquire gpu/3 --holder bob"}},
	"break":              {before: []string{"acquire gpu/pool --holder ann --slots 1 --capacity 4"}},
	"bench": {replace: map[string]string{"--duration 30s": "--duration 200ms", "--leases 100000": "--leases 100",
		"--clients 256": "--clients 4", "--clients 64": "--clients 4 --duration 200ms", "--watchers 1000": "--watchers 3",
		"--rate 1000": "--rate 100 --duration 200ms"}},
	"claim":       {before: []string{"task add jobs/first x"}},
	"task":        {before: []string{"task add jobs/first x"}},
	"change":      {env: []string{"id=4k2vqf7m", "next=next-1"}},
	"cert":        {before: []string{"cert ca"}},
	"cert client": {before: []string{"cert ca"}},
	"cert server": {before: []string{"cert ca", "cert ca --dir ca2"}},
	"cert show":   {before: []string{"cert ca", "cert server n1 10.0.0.1"}},
	"check":       {before: []string{"backup leasehold.backup", "restore leasehold.backup --data leasehold-data"}},
	"delete":      {empty: true, before: []string{"put config/limits a"}, replace: map[string]string{"181": "1"}},
	"definitions": {before: []string{"define gpu/pool --capacity 4"}},
	"undefine":    {before: []string{"define gpu/pool --capacity 4", "define license/ --capacity 4"}},
	"demo":        {empty: true, follows: true},
	"doctor":      {replace: map[string]string{"--for 30s": "--for 1s"}},
	"elect":       {empty: true},
	"get":         {empty: true, before: []string{"put config/limits a"}, replace: map[string]string{"181": "1"}},
	"move":        {replace: map[string]string{"2m4kq1c9": "bobs"}},
	"pool":        {before: pooled.before, replace: map[string]string{"./train.sh": "./train"}},
	"pool drain":  pooled,
	"pool agent": {follows: true, before: pooled.before,
		replace: map[string]string{"/usr/bin/nvidia-smi": "./nvidia-smi"}},
	"pool list":           pooled,
	"pool report":         pooled,
	"pool run":            pooled,
	"pool status":         {before: pooled.before, replace: map[string]string{" -N lab": ` -N "$LEASEHOLD_NAMESPACE"`}},
	"pool reserve":        pooled,
	"reservations show":   booked,
	"reservations cancel": booked,
	"put": {before: []string{"acquire n --id n1", "put x y"}, env: []string{"id=n1", "token=1", "session="}, empty: true,
		replace: map[string]string{` --session "$session"`: ""}},
	"release": {env: []string{"id=4k2vqf7m"}},
	"renew":   {env: []string{"id=4k2vqf7m"}},
	"restore": {before: []string{"backup leasehold.backup"}},
	"rollback": {before: []string{"put state/network a --keep 9", "put state/network b"},
		replace: map[string]string{"181": "1", "190": "2"}, empty: true},
	"run": {empty: true, before: []string{"define gpu/pool --units 0,1,2,3"}},
	"versions": {before: []string{"put state/network a --keep 9", "put state/network b"},
		replace: map[string]string{"181": "1"}, empty: true},
	"watch": {follows: true, replace: map[string]string{"42": "0.0"}},
}

// elsewhere says why an example is not run here, by how it begins, and in which file its command is.
var elsewhere = []struct{ prefix, why, file string }{
	{"leasehold top", "it draws on a terminal", "top_linux_test.go"},
	{"leasehold pool adopt", "it needs a process on a card", "testdata/walk_pool.txtar"},
	{"leasehold state", "it needs states that Terraform wrote", "testdata/state.txtar"},
	{"leasehold terraform", "it needs a door of its own", "testdata/state.txtar"},
	{"leasehold run --terraform", "it needs something like Terraform", "testdata/run-terraform.txtar"},
	{"terraform ", "the real one is in test/compat/terraform", ""},
	{"leasehold azure", "it needs a server with accounts", "testdata/azure.txtar"},
	{"leasehold cluster end-quarantine", "it needs a restored cluster", "testdata/*.txtar"},
	{"leasehold cluster", "it needs a cluster", "*_test.go"},
	{"leasehold serve --config", "it needs a cluster, or a port that others may use", "testdata/serve.txtar"},
	{"leasehold serve --azure-listen", "it needs a server with accounts", "testdata/azure.txtar"},
	{"leasehold list --ca", "it needs a server with certificates", "testdata/cert.txtar"},
	{"leasehold session", "it needs a session that somebody opened", "testdata/walk_agents.txtar"},
	{"leasehold access", "it needs a server with access on", "testdata/*access.txtar"},
	{"leasehold login", "it needs a server with access on", "testdata/login.txtar"},
	{"leasehold logout", "it needs a server with access on", "testdata/login.txtar"},
	{"leasehold context", "it needs a person's contexts", "testdata/context.txtar"},
	{"leasehold guard", "it needs a repository", "testdata/guard.txtar"},
	{"git config", "it needs a repository", ""},
	{"kubectl ", "the real one is in test/compat/kubernetes", ""},
	{"leasehold kubernetes config --server", "it needs a server with certificates", "testdata/kubernetes.txtar"},
	{"leasehold kubernetes credential", "it needs somebody who has logged in", "testdata/kubernetes.txtar"},
	{"while sleep 10", "it is a loop without end", ""},
	{"leasehold completion zsh", "it needs zsh", "testdata/completion.txtar"},
}

// runElsewhere checks that a command is where the table says.
func runElsewhere(t *testing.T, line, file string) {
	t.Helper()
	if file == "" {
		return
	}
	found, _, err := newProgram().root().Find(strings.Fields(line)[1:])
	if err != nil {
		t.Fatal(err)
	}
	path, text := strings.TrimPrefix(found.CommandPath(), "leasehold "), ""
	files, _ := filepath.Glob(file)
	for _, name := range files {
		part, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += strings.NewReplacer(`"`, "", ",", "").Replace(string(part))
	}
	if !strings.Contains(text, path) {
		t.Errorf("%s does not run %q", file, path)
	}
}

// Every example of every --help does what it says: it is run by a shell, against a real server, in a
// namespace of its own.
func TestEveryExampleWorks(t *testing.T) {
	for _, program := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("left out: the examples of --help need %s", program)
		}
	}
	y := newYard(t)
	y.start("n1", "--data", "n1", "--listen", "127.0.0.1:0")
	var server string
	y.eventually("a server", func() (string, bool) {
		text, _ := os.ReadFile(y.servers["n1"].log)
		server = string(regexp.MustCompile(`http://127\.0\.0\.1:\d+`).Find(text))
		return string(text), server != ""
	})
	seen := 0
	for _, c := range append(commands(newProgram().root()), newProgram().root()) {
		path := strings.TrimPrefix(c.CommandPath(), "leasehold ")
		for i, line := range strings.Split(continued.ReplaceAllString(c.Example, "$1 "), "\n") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			seen++
			t.Run(fmt.Sprintf("%s_%d", path, i+1), func(t *testing.T) {
				playExample(t, scenes[path], c, line, server, fmt.Sprintf("example-%d", seen))
			})
		}
	}
	if seen < 100 {
		t.Errorf("only %d examples were run", seen)
	}
}

// continued is the end of a line that goes on in the next.
var continued = regexp.MustCompile(`(?: \\|( \||&&))\n\s*`)

// Examples are made for a terminal of 80 columns.
func TestExamplesAreNarrow(t *testing.T) {
	for _, c := range commands(newProgram().root()) {
		for line := range strings.SplitSeq(c.Example, "\n") {
			if n := len([]rune(line)); n > 80 {
				t.Errorf("%s has an example of %d columns: %s", c.CommandPath(), n, line)
			}
		}
	}
}

func playExample(t *testing.T, s scene, c *cobra.Command, line, server, namespace string) {
	for _, e := range elsewhere {
		if strings.HasPrefix(line, e.prefix) {
			t.Logf("run elsewhere: %s (%s: %s)", line, e.why, e.file)
			runElsewhere(t, line, e.file)
			return
		}
	}
	dir := exampleDir(t)
	env := append(os.Environ(), "LEASEHOLD_SERVER="+server, "LEASEHOLD_NAMESPACE="+namespace, "GORACE=atexit_sleep_ms=0",
		"LEASEHOLD_LISTEN=127.0.0.1:0", "HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	var setup []string
	if !s.empty && !regexp.MustCompile(`^leasehold (run|acquire|elect) `).MatchString(line) {
		setup = append(setup, "acquire prod/deploy --id 4k2vqf7m --holder ann --ttl 10m")
		if path := c.Name(); path == "queue" || path == "move" || path == "describe" {
			setup = append(setup, "acquire prod/deploy --id bobs --holder bob --session none")
		}
	}
	if !strings.HasPrefix(line, "leasehold cert ca") { // which makes what the others need
		setup = append(setup, s.before...)
	}
	for _, command := range setup {
		if strings.HasSuffix(command, "--session none") { // bob waits in the background
			wait := exec.Command("bash", "-c", "exec leasehold acquire prod/deploy --id bobs --holder bob --wait 1m")
			wait.Dir, wait.Env = dir, env
			if err := wait.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = wait.Process.Kill(); _ = wait.Wait() })
			awaitWaiter(t, dir, env)
			continue
		}
		if out, code := inShell(t, dir, env, "leasehold "+command, false); code != 0 {
			t.Fatalf("leasehold %s ended with %d:\n%s", command, code, out)
		}
	}
	for _, r := range [][2]string{{"/etc/leasehold.yaml", "etc.yaml"}, {"/var/lib/leasehold", "restored"},
		{"/backup/", "./"}, {"/root/leasehold-ca", "ca2"},
		{"http://127.0.0.1:4653", server}, {"https://10.0.0.1:4653", server}, {"http://leases.example:4653", server}} {
		line = strings.ReplaceAll(line, r[0], r[1])
	}
	for from, to := range s.replace {
		line = strings.ReplaceAll(line, from, to)
	}
	if !strings.Contains(line, "--yes") { // the answer, where nobody can be asked
		line = strings.Replace(line, "leasehold break ", "leasehold break --yes ", 1)
	}
	line = strings.ReplaceAll(line, "release ID", "release 4k2vqf7m")
	follows := s.follows || strings.Contains(line, "--loop --ttl") || strings.HasPrefix(line, "leasehold demo") || strings.Contains(line, "--watch") || strings.Contains(line, "leasehold serve") ||
		strings.Contains(line, "--restart") || strings.HasPrefix(line, "leasehold watch")
	if out, code := inShell(t, dir, append(env, s.env...), line, follows); code != s.code {
		t.Errorf("%s\nended with %d:\n%s", line, code, out)
	}
}

// awaitWaiter waits until bob waits.
func awaitWaiter(t *testing.T, dir string, env []string) {
	t.Helper()
	for end := time.Now().Add(patienceOfScripts); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if out, _ := inShell(t, dir, env, "leasehold queue prod/deploy -o name", false); strings.Contains(out, "bobs") {
			return
		}
	}
	t.Fatal("bob does not wait")
}

// exampleDir has what the examples call that is not ours.
func exampleDir(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"deploy.sh": "exit 0", "migrate": "exit 0", "report": "exit 0", "backup": "exit 0", "scheduler": "exit 0",
		"train": "exit 0", "resize.sh": "exit 0", "work.sh": "exit 0",
		"test": "exit 0",
		"nvidia-smi": "case \"$1\" in -L|*compute*) exit;; *util*) use=', 97, 40000';; esac; " +
			"for card in GPU-5f1c GPU-77aa; do echo \"$card, NVIDIA H100 80GB HBM3, 81559$use\"; done",
		"phones.txt":       "pixel-1 os=android\npixel-2 os=android\n",
		"serve-as-primary": "exit 0", "page-somebody": "exit 0", "ssh": `shift; exec sh -c "$*"`,
		"etc.yaml": "", "new.yaml": "", "state.json": "{}", "job.json": "{}",
	} {
		mode := os.FileMode(0o755)
		if strings.Contains(name, ".yaml") || strings.Contains(name, ".json") || strings.Contains(name, ".txt") {
			mode = 0o644
		} else {
			text = "#!/bin/sh\n" + text + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ".config/fish/completions"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// inShell runs a line. One that goes on is stopped after a while, and has then done well if it was
// still running and had complained about nothing.
func inShell(t *testing.T, dir string, env []string, line string, follows bool) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfYards)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if follows {
		ended := time.AfterFunc(time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) })
		defer ended.Stop()
	}
	err := cmd.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	code := cmd.ProcessState.ExitCode()
	if follows && !strings.Contains(out.String(), "leasehold: ") {
		code = 0
	}
	return out.String(), code
}
