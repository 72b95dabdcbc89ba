package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

func TestDefaultsServe(t *testing.T) {
	c, settings, err := ForServer(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	want := Server{
		Listen: "127.0.0.1:4653", Data: "leasehold-data", DrainLinger: time.Second, DrainTimeout: 10 * time.Second,
		MinFree: 256 << 20, SegmentSize: 64 << 20, SnapshotEvery: 64 << 20, JournalSize: 256 << 20, Caps: leasehold.DefaultCaps(), LogLevel: slog.LevelInfo, LogFormat: "text", Name: "n1",
	}
	if !reflect.DeepEqual(c.Server, want) {
		t.Errorf("without any source a server has %+v, want %+v", c.Server, want)
	}
	for _, s := range settings {
		if s.Origin != "default" {
			t.Errorf("%s comes from %s although nobody set it", s.Key.Name, s.Origin)
		}
	}
}

func TestStrongestSourceWins(t *testing.T) {
	file := write(t, "listen: 127.0.0.1:1\ndata: file\nlog-level: debug\n")
	c, settings, err := ForServer(Sources{
		Flags:   map[string]string{"listen": "127.0.0.1:3", "config": file},
		Environ: []string{"LEASEHOLD_LISTEN=127.0.0.1:2", "LEASEHOLD_DATA=env", "HOME=/", "LEASEHOLD_LOG_FORMAT="},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Server; s.Listen != "127.0.0.1:3" || s.Data != "env" || s.LogLevel != slog.LevelDebug || s.LogFormat != "text" {
		t.Errorf("got %+v", s)
	}
	origins := map[string]string{
		"listen": "flag --listen", "data": "LEASEHOLD_DATA", "log-level": file + ":3", "log-format": "default", "config": "flag --config",
	}
	for _, s := range settings {
		if want, ok := origins[s.Key.Name]; ok && s.Origin != want {
			t.Errorf("%s comes from %q, want %q", s.Key.Name, s.Origin, want)
		}
	}
}

func TestFileCanBeNamedByVariable(t *testing.T) {
	file := write(t, "insecure: true\nlisten: ':9'\n")
	c, _, err := ForServer(Sources{Environ: []string{"LEASEHOLD_CONFIG=" + file}})
	if err != nil || !c.Server.Insecure || c.Server.Listen != ":9" {
		t.Errorf("got %+v, %v", c.Server, err)
	}
}

// Each case is what somebody may write, and a part of the sentence that must help
// them. FILE stands for the file's path.
func TestMistakesInFile(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"unknown key", "lisen: x", `FILE:1: "lisen" is not a key that leasehold knows: did you mean listen?`},
		{"underscore", "\nlog_level: info", "FILE:2: \"log_level\" is not a key that leasehold knows: did you mean log-level?"},
		{"nothing alike", "colour: blue", "known are listen, data, "},
		{"wrong value", "# mine\nlog-level: loud", `FILE:2: log-level is "loud": use debug, info, warn or error`},
		{"no port", "listen: localhost", `FILE:1: listen is "localhost": write it as host:port, such as 127.0.0.1:4653`},
		{"no such port", "listen: localhost:70000", "0 (any that is free) to 65535"},
		{"not a switch", "insecure: maybe", "use true or false"},
		{"twice", "data: a\ndata: b", "FILE:2: data is already set at FILE:1"},
		{"a list", "data: [a, b]", "FILE:1: data takes one plain value"},
		{"an alias", "data: &a x\nlisten: *a", "FILE:2: listen takes one plain value"},
		{"no value", "data:", "FILE:1: data has no value"},
		{"empty value", "data: ''", `FILE:1: data is "": name a directory`},
		{"client's key", "server: http://x", "use --server or LEASEHOLD_SERVER"},
		{"itself", "config: x", "can't be set in the file that it names"},
		{"a list of lines", "- listen", "FILE:1: expected lines such as"},
		{"two documents", "data: a\n---\ndata: b", "a second document begins here"},
		{"broken", "data: a\n\tlisten: b", "FILE:2: not YAML: "},
		{"public profiles", "pprof-listen: 0.0.0.0:6060", "use a loopback address"},
		{"public server", "listen: 0.0.0.0:4653", "or give --insecure"},
		{"a journal without room", "journal-size: 1023KiB", "a journal needs at least 1MiB; 0 turns it off"},
		{"a cap", "max-leases: 0", "write a number from 1 to 100000000"},
		{"a cap that is too large", "max-namespaces: 4097", "write a number from 1 to 4096"},
		{"not a size", "min-free: lots", "write it as 512KiB, 64MiB or 2GiB"},
		{"a small log", "segment-size: 10", "1048576 bytes to 1048576GiB are allowed"},
		{"a huge log", "segment-size: 9999999GiB", "are allowed"},
		{"not a duration", "drain-timeout: 10", "is not a duration: write it as"},
		{"a short drain", "drain-timeout: -1s", "it can't be less than 0s"},
		{"an address as a name", "host-names: a.example,http://b.example", `"http://b.example" is not a host name`},
		{"a port with a name", "host-names: a.example:80", "without ports"},
		{"every name", "host-names: '*'", "is not a host name"},
		{"odd key", "[a]: b", "a key is a plain word"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file := write(t, c.file)
			_, _, err := ForServer(Sources{Flags: map[string]string{"config": file}})
			mustSay(t, err, strings.ReplaceAll(c.want, "FILE", file))
		})
	}
}

func TestMistakesInVariablesAndFlags(t *testing.T) {
	cases := []struct {
		name string
		src  Sources
		want string
	}{
		{"unknown variable", Sources{Environ: []string{"LEASEHOLD_LISTN=x"}}, "LEASEHOLD_LISTN is not a variable that leasehold knows: did you mean LEASEHOLD_LISTEN?"},
		{"nothing alike", Sources{Environ: []string{"LEASEHOLD_FOO=x"}}, "known are LEASEHOLD_LISTEN, "},
		{"very long", Sources{Environ: []string{"LEASEHOLD_" + strings.Repeat("X", 500) + "=x"}}, "known are "},
		{"wrong variable", Sources{Environ: []string{"LEASEHOLD_LOG_FORMAT=xml"}}, `LEASEHOLD_LOG_FORMAT: log-format is "xml": use text or json`},
		{"wrong flag", Sources{Flags: map[string]string{"data": ""}}, `flag --data: data is "": name a directory`},
		{"overruled", Sources{Flags: map[string]string{"log-level": "info"}, Environ: []string{"LEASEHOLD_LOG_LEVEL=loud"}}, "LEASEHOLD_LOG_LEVEL: log-level"},
		{"no file", Sources{Flags: map[string]string{"config": "/nowhere/x"}}, "configuration file /nowhere/x does not exist"},
		{"a directory", Sources{Flags: map[string]string{"config": "/"}}, "is a directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := ForServer(c.src)
			mustSay(t, err, c.want)
		})
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	file := write(t, "lisen: x\nlog-level: loud\n")
	_, _, err := ForServer(Sources{Flags: map[string]string{"config": file}, Environ: []string{"LEASEHOLD_DTA=x"}})
	mustSay(t, err, "lisen")
	mustSay(t, err, "loud")
	mustSay(t, err, "LEASEHOLD_DTA")
}

func TestLargeFileIsRefused(t *testing.T) {
	file := write(t, strings.Repeat("#\n", maxFile))
	_, _, err := ForServer(Sources{Flags: map[string]string{"config": file}})
	mustSay(t, err, "at most 1048576 are allowed")
}

// A pod beside a Kubernetes service named leasehold finds these in its
// environment, put there by nobody.
func TestKubernetesServicesAreNotOurs(t *testing.T) {
	_, _, err := ForServer(Sources{Environ: []string{
		"LEASEHOLD_SERVICE_HOST=10.0.0.1", "LEASEHOLD_SERVICE_PORT=4653", "LEASEHOLD_SERVICE_PORT_HTTP=4653", "LEASEHOLD_PORT=tcp://10.0.0.1:4653",
		"LEASEHOLD_PORT_4653_TCP=tcp://10.0.0.1:4653", "LEASEHOLD_PORT_4653_TCP_ADDR=10.0.0.1", "LEASEHOLD_SERVER_PORT=tcp://10.0.0.1:4653",
	}})
	if err != nil {
		t.Error(err)
	}
	_, _, err = ForServer(Sources{Environ: []string{"LEASEHOLD_PORT=4653"}})
	mustSay(t, err, "LEASEHOLD_PORT is not a variable")
}

// A command that leasehold run runs may call leasehold, or start a server.
func TestWhatRunSetsIsNoSetting(t *testing.T) {
	var env []string
	for _, name := range ForCommands {
		env = append(env, name+"=x")
	}
	if _, _, err := ForClient(Sources{Environ: env}); err != nil {
		t.Error(err)
	}
	_, _, err := ForClient(Sources{Environ: []string{"LEASEHOLD_IDS=x"}})
	mustSay(t, err, "LEASEHOLD_IDS is not a variable")
}

func TestWhoCanReach(t *testing.T) {
	for address, alone := range map[string]bool{
		"127.0.0.1:1": true, "127.1.2.3:1": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "example.org:1": false,
	} {
		if err := (&Server{Listen: address}).exposed(); (err == nil) != alone {
			t.Errorf("%s without --insecure: %v", address, err)
		}
		if err := (&Server{Listen: address, Insecure: true}).exposed(); err != nil {
			t.Errorf("%s with --insecure: %v", address, err)
		}
	}
}

func TestClient(t *testing.T) {
	c, _, err := ForClient(Sources{Environ: []string{"LEASEHOLD_HOLDER=ann", "LEASEHOLD_NAMESPACE=team", "LEASEHOLD_CONFIG=/nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Client{Server: "http://127.0.0.1:4653", Servers: []string{"http://127.0.0.1:4653"}, Namespace: "team", Holder: "ann"}); !reflect.DeepEqual(c.Client, want) {
		t.Errorf("got %+v, want %+v", c.Client, want)
	}
}

func TestServerURL(t *testing.T) {
	for given, want := range map[string]string{
		"127.0.0.1": "http://127.0.0.1:4653", "::1,n2:5": "http://[::1]:4653,http://n2:5", "localhost:1": "http://localhost:1", "http://a:1/": "http://a:1", "https://a/leases/": "https://a/leases", "[::1]:2": "http://[::1]:2",
		"ftp://a": "", "http://": "", "": "", "http://u:p@a": "", "http://a/?x=1": "", "http://a b": "",
	} {
		c, _, err := ForClient(Sources{Flags: map[string]string{"server": given}})
		if (err == nil) != (want != "") || err == nil && c.Client.Server != want {
			t.Errorf("%q: got %q, %v; want %q", given, c.Client.Server, err, want)
		}
	}
}

// What config show prints as YAML sets the same things again.
func TestYAMLComesBack(t *testing.T) {
	src := Sources{Flags: map[string]string{"data": "yes: # no", "listen": "[::1]:0", "insecure": "true", "pprof-listen": ""}}
	before, settings, err := ForServer(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, origins := range []bool{false, true} {
		text, err := YAML(settings, origins)
		if err != nil {
			t.Fatal(err)
		}
		after, _, err := ForServer(Sources{Flags: map[string]string{"config": write(t, string(text))}})
		if err != nil || !reflect.DeepEqual(after.Server, before.Server) {
			t.Errorf("got %+v, %v from:\n%s", after.Server, err, text)
		}
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range Keys() {
		if seen[key.Name] || key.Help == "" || key.set == nil {
			t.Errorf("%s stands twice, has no help, or no check", key.Name)
		}
		seen[key.Name] = true
		for _, value := range key.Values {
			if err := key.set(new(Config), value); err != nil {
				t.Errorf("%s refuses %q, which its table offers: %v", key.Name, value, err)
			}
		}
		if err := key.set(new(Config), key.Default); err != nil {
			t.Errorf("%s refuses its default: %v", key.Name, err)
		}
	}
}

func TestSizes(t *testing.T) {
	for given, want := range map[string]int64{"0": 0, "512": 512, "512KiB": 512 << 10, "64 MiB": 64 << 20, "2GiB": 2 << 30, "1048576GiB": 1 << 50} {
		if got, err := size(given, 0); got != want || err != nil {
			t.Errorf("%q is %d, %v; want %d", given, got, err, want)
		}
	}
	for _, given := range []string{"", "MiB", "1mb", "-1", "1.5GiB", "1048577GiB", "1099511627775GiB"} {
		if got, err := size(given, 0); err == nil {
			t.Errorf("%q is %d, want an error", given, got)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"listen", "data", "log-level", "log-format"}
	for name, want := range map[string]string{
		"lsiten": "listen", "LOG_LEVEL": "log-level", "loglevel": "log-level", "dat": "data", "zebra": "", "": "", "x": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
	if !slices.Contains(known, Nearest("log-lvel", known)) {
		t.Error("a name was made up")
	}
}

func mustSay(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant a sentence with %q", err, want)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leasehold.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
