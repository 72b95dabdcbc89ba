package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// Run --terraform promises to keep a lock alive, and has nothing but environment variables to
// keep that promise with. Terraform uses them only where its configuration says nothing. So the
// configuration is looked at first, and a command whose lock could not be kept is not started.

// A terraformCall is a command line of Terraform or OpenTofu.
type terraformCall struct {
	program string
	dir     string // that it works in
	words   []string
	flags   []string
}

// terraformCallOf reads a command line; ok reports whether it is Terraform's.
func terraformCallOf(argv []string) (call terraformCall, ok bool) {
	call = terraformCall{program: filepath.Base(argv[0]), dir: "."}
	if call.program != "terraform" && call.program != "tofu" {
		return call, false
	}
	for i := 1; i < len(argv); i++ {
		arg := argv[i]
		if !strings.HasPrefix(arg, "-") {
			call.words = append(call.words, arg)
			continue
		}
		flag := "-" + strings.TrimLeft(arg, "-") // both -flag and --flag are allowed
		if flag == "-backend-config" && i+1 < len(argv) {
			i++
			flag += "=" + argv[i]
		}
		if dir, chdir := strings.CutPrefix(flag, "-chdir="); chdir && len(call.words) == 0 {
			call.dir = dir
			continue
		}
		call.flags = append(call.flags, flag)
	}
	return call, true
}

// off reports whether a flag is given as false.
func (c *terraformCall) off(name string) bool {
	return slices.ContainsFunc(c.flags, func(flag string) bool {
		value, ok := strings.CutPrefix(flag, name+"=")
		on, err := strconv.ParseBool(value)
		return ok && err == nil && !on
	})
}

// locks reports whether the command takes the lock of its state. Other commands have none that
// could be kept.
func (c *terraformCall) locks() bool {
	if len(c.words) == 0 || slices.Contains(c.flags, "-help") {
		return false
	}
	switch c.words[0] {
	case "apply", "destroy", "plan", "refresh", "import", "taint", "untaint":
		return true
	case "init":
		return !c.off("-backend")
	case "state":
		return len(c.words) > 1 && slices.Contains([]string{"mv", "rm", "push", "replace-provider"}, c.words[1])
	}
	return false
}

// A backend is where Terraform keeps a state, as far as its configuration says so.
type backend struct {
	kind string            // such as http; empty: a local file
	set  map[string]string // what is set in it, with the values that are plain text
	file string            // that says so
}

// backendOf finds the backend that the command will use. Once a directory is initialized, that is
// what init has saved; init itself reads the configuration. known is false where Terraform
// will ask for an init.
func (c *terraformCall) backendOf(getenv func(string) string) (b backend, known bool, err error) {
	data := getenv("TF_DATA_DIR")
	if data == "" {
		data = ".terraform"
	}
	if !filepath.IsAbs(data) {
		data = filepath.Join(c.dir, data)
	}
	if c.words[0] != "init" {
		b, err := savedBackend(filepath.Join(data, "terraform.tfstate"))
		if !errors.Is(err, os.ErrNotExist) {
			return b, err == nil, err
		}
	}
	b, err = configuredBackend(c.dir, c.program == "tofu")
	if err != nil || c.words[0] != "init" {
		return b, err == nil && b.kind == "", err
	}
	for _, flag := range c.flags {
		if pair, ok := strings.CutPrefix(flag, "-backend-config="); ok {
			b.override(c.dir, pair)
		}
	}
	return b, true, nil
}

// override adds what a -backend-config says: a value, or a file of them.
func (b *backend) override(dir, pair string) {
	if name, value, ok := strings.Cut(pair, "="); ok {
		b.set[strings.TrimSpace(name)], b.file = strings.Trim(strings.TrimSpace(value), `"`), "-backend-config"
		return
	}
	if !filepath.IsAbs(pair) {
		pair = filepath.Join(dir, pair)
	}
	// A file that cannot be read is Terraform's to refuse.
	text, _ := os.ReadFile(pair)
	for name, value := range attributesIn(string(text)) {
		b.set[name], b.file = value, pair
	}
}

// savedBackend reads what init has saved.
func savedBackend(file string) (backend, error) {
	b := backend{file: file, set: map[string]string{}}
	text, err := os.ReadFile(file)
	if err != nil {
		return b, err
	}
	var saved struct {
		Backend *struct {
			Type   string         `json:"type"`
			Config map[string]any `json:"config"`
		} `json:"backend"`
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		return b, fmt.Errorf("%s cannot be read: %w", file, err)
	}
	if saved.Backend == nil {
		return b, os.ErrNotExist
	}
	b.kind = saved.Backend.Type
	for name, value := range saved.Backend.Config {
		if text, ok := value.(string); ok {
			b.set[name] = text
		}
	}
	return b, nil
}

// keepable returns why run could not keep the lock that Terraform would take; nil if it can, or
// nobody can tell.
func (f *runFlags) keepable(c *cli.Conn, getenv func(string) string) error {
	call, ok := terraformCallOf(f.argv)
	if !ok || !call.locks() {
		return nil
	}
	if call.off("-lock") {
		return cli.Hint(cli.Usage("with -lock=false %s takes no lock that run could keep alive", call.program),
			"leave -lock=false out, or run %s without leasehold run", call.program)
	}
	b, known, err := call.backendOf(getenv)
	if err != nil || !known {
		return nil // Terraform will say what is wrong
	}
	if why := b.contradicts(f.terraform); why != "" {
		return f.useEmptyBlock(c, call, b.kind, cli.Failure(leasehold.Invalid, "%s", why))
	}
	return nil
}

// contradicts says why a backend takes no lock that a run for the state could keep; empty if it
// does.
func (b *backend) contradicts(state string) string {
	switch {
	case b.kind == "":
		return "the configuration has no backend block: Terraform would keep its state in a local file, and lock that"
	case b.kind != "http":
		return fmt.Sprintf("%s says backend %q: run --terraform keeps locks of the http backend alive, and no others",
			b.file, b.kind)
	}
	if _, set := b.set["lock_address"]; set {
		return fmt.Sprintf("%s sets lock_address, and Terraform would use that instead of the address that run gives "+
			"it: run could not keep its lock alive", b.file)
	}
	if address := b.set["address"]; namesAnother(address, state) {
		return fmt.Sprintf("%s sets address to %s, which is not the state %s", b.file, cli.Quote(address), state)
	}
	return ""
}

// namesAnother reports whether an address is surely that of another state. In the dialects of
// other servers, and behind a proxy, nobody can tell.
func namesAnother(address, state string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	path := u.EscapedPath()
	return strings.Contains(path, "/terraform/") && !strings.Contains(path, "/terraform/state") &&
		!strings.HasSuffix(path, tfstate.Address(state))
}

// useEmptyBlock adds how to let run set the addresses.
func (f *runFlags) useEmptyBlock(c *cli.Conn, call terraformCall, kind string, err error) error {
	line := c.Again("run", "--terraform", f.terraform) + " -- " + call.program
	if call.dir != "." {
		line += " -chdir=" + cli.Quote(call.dir)
	}
	if line += " init -migrate-state"; kind == "http" {
		line = strings.TrimSuffix(line, "-migrate-state") + "-reconfigure"
	}
	return cli.Hint(err, "leave the block empty, backend \"http\" {}, and then: %s", line)
}
