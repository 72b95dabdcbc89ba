package cert

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/internal/access/upkeep"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/cli"
)

func makeCluster(a *cli.App) *cobra.Command {
	var f certFlags
	var p plan
	cmd := &cobra.Command{
		Use:   "cluster NAME=HOST...",
		Short: "Make everything that the servers of a new cluster and a client need",
		Long: `Cluster makes everything that the servers of a new cluster and their clients need: an
authority, unless the directory has one already, and then

  NAME.crt, NAME.key, NAME.yaml   for each server: certificate, key and configuration
  NAME.crt, NAME.key, NAME.env    for each client: certificate, key and environment

HOST is the name or address at which clients and the other servers reach a server, on
ports 4653 and 4654; further ones follow it after commas. The configuration names files
in --config-dir, where you copy ca.crt and the files of a server to. When it is done it
prints the commands to copy and to start.

Nothing that exists is replaced without --force, and the authority never is.`,
		Example: `  leasehold cert cluster n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3
  leasehold cert cluster n1=10.0.0.1,n1.example --client ann --client bob
  leasehold cert cluster n1=127.0.0.1 --config-dir "$PWD/one" --dir one -o json`,
		Args: cli.Takes(1, -1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := p.read(args); err != nil {
			return cli.SeeHelp(cmd, cli.Usage("%v", err))
		}
		return p.carryOut(a, f)
	}
	f.on(cmd, certificate.DefaultLasts)
	cmd.Flags().StringSliceVar(&p.clients, "client", []string{"admin"}, "name of a client; may be given several times")
	cmd.Flags().StringVar(&p.configDir, "config-dir", "/etc/leasehold", "where the files will be on each server")
	cmd.Flags().StringVar(&p.data, "data", "/var/lib/leasehold", "where each server keeps its data")
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// A plan is what cert cluster was told to make.
type plan struct {
	servers         []planned
	clients         []string
	configDir, data string
}

// planned is a server of the plan; others reach it at its first host.
type planned struct {
	name  string
	hosts []string
}

// The ports of a server that says nothing else, and of its peers by convention.
const (
	clientPort = "4653"
	peerPort   = "4654"
)

// read takes NAME=HOST,... apart. Everything is checked here, so that nothing is made of half a plan.
func (p *plan) read(args []string) error {
	taken := map[string]string{"ca": "the authority"}
	take := func(name, as string) error {
		if other, twice := taken[name]; twice {
			return fmt.Errorf("%s is already the name of %s: choose another one", name, other)
		}
		taken[name] = as
		return certificate.CheckName(name)
	}
	hosts := map[string]string{}
	for _, arg := range args {
		name, list, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("%q has no =: write a server as n1=10.0.0.1", arg)
		}
		if err := take(name, "a server"); err != nil {
			return err
		}
		s := planned{name, strings.Split(list, ",")}
		for _, host := range s.hosts {
			if err := certificate.CheckHost(host); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if strings.HasPrefix(s.hosts[0], "*") {
			return fmt.Errorf("%s: the first host is the one that it listens at, and cannot be %s", name, s.hosts[0])
		}
		if other := hosts[s.hosts[0]]; other != "" {
			return fmt.Errorf("%s and %s have the same address %s: each server needs its own", other, name, s.hosts[0])
		}
		hosts[s.hosts[0]] = name
		p.servers = append(p.servers, s)
	}
	for _, name := range p.clients {
		if err := take(name, "a client"); err != nil {
			return err
		}
	}
	return nil
}

// carryOut makes the files. It looks first whether one is in the way: a second run must not leave
// half of the servers with new certificates.
func (p *plan) carryOut(a *cli.App, f certFlags) error {
	if err := p.inTheWay(f); err != nil && !f.force {
		return err
	}
	ca, err := p.authority(a, f)
	if err != nil {
		return err
	}
	var all []made
	for _, s := range p.servers {
		pair, err := ca.Server(serverRequest(a, f, s.name, s.hosts))
		if err != nil {
			return cli.Usage("%v", err)
		}
		m, err := keepWith(f, s.name, pair, ".yaml", p.yaml(s))
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	for _, name := range p.clients {
		pair, err := ca.Client(certificate.Request{Name: name, Lasts: f.lasts.Value, Now: a.Now()})
		if err != nil {
			return cli.Usage("%v", err)
		}
		text, err := p.env(f, name)
		if err != nil {
			return err
		}
		m, err := keepWith(f, name, pair, ".env", text)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	return p.report(a, f, all)
}

// inTheWay returns an error if a file that would be made exists.
func (p *plan) inTheWay(f certFlags) error {
	var files []string
	for _, s := range p.servers {
		files = append(files, s.name+".crt", s.name+".key", s.name+".yaml")
	}
	for _, name := range p.clients {
		files = append(files, name+".crt", name+".key", name+".env")
	}
	for _, name := range files {
		if _, err := os.Lstat(f.file(name)); !errors.Is(err, fs.ErrNotExist) {
			return cli.Hint(cli.Usage("%v: nothing was written", &certificate.ExistsError{Name: f.file(name)}),
				"to replace the files of all these servers and clients give --force; the authority stays")
		}
	}
	return nil
}

// authority returns the authority of the directory, and makes one if there is none.
func (p *plan) authority(a *cli.App, f certFlags) (*certificate.Authority, error) {
	_, certErr := os.Lstat(f.file("ca.crt"))
	_, keyErr := os.Lstat(f.file("ca.key"))
	if errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist) {
		pair, err := certificate.NewAuthority(certificate.Request{Name: "leasehold", Lasts: certificate.AuthorityLasts,
			Now: a.Now()})
		if err != nil {
			return nil, err
		}
		if _, err := write(f, "ca", pair); err != nil {
			return nil, err
		}
	}
	return openAuthority(f)
}

// yaml returns the configuration of a server.
func (p *plan) yaml(s planned) string {
	var peers []string
	for _, other := range p.servers {
		peers = append(peers, other.name+"="+net.JoinHostPort(other.hosts[0], peerPort))
	}
	own := func(end string) string { return filepath.Join(p.configDir, s.name+end) }
	ca := filepath.Join(p.configDir, "ca.crt")
	var b strings.Builder
	for _, line := range [][2]string{
		{"name", s.name}, {"data", p.data}, {"listen", net.JoinHostPort(s.hosts[0], clientPort)},
		{"initial-cluster", strings.Join(peers, ",")},
		{"tls-cert", own(".crt")}, {"tls-key", own(".key")}, {"tls-client-ca", ca},
		{"peer-cert", own(".crt")}, {"peer-key", own(".key")}, {"peer-ca", ca},
	} {
		value, err := yaml.Marshal(line[1])
		if err != nil {
			panic(err) // every string can be written
		}
		fmt.Fprintf(&b, "%s: %s", line[0], value)
	}
	fmt.Fprintln(&b, "access: true")
	return b.String()
}

// env returns what a client's shell needs to find and to trust the servers. The paths are those of
// this machine, where the operator is the first client.
func (p *plan) env(f certFlags, name string) (string, error) {
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintln(&b, "# If you move these files, change the paths.")
	for _, line := range [][2]string{
		{"SERVER", p.urls()}, {"CA", filepath.Join(dir, "ca.crt")}, {"CERT", filepath.Join(dir, name+".crt")},
		{"KEY", filepath.Join(dir, name+".key")},
	} {
		fmt.Fprintf(&b, "export LEASEHOLD_%s=%s\n", line[0], cli.Quote(line[1]))
	}
	return b.String(), nil
}

func (p *plan) urls() string {
	var urls []string
	for _, s := range p.servers {
		urls = append(urls, "https://"+net.JoinHostPort(s.hosts[0], clientPort))
	}
	return strings.Join(urls, ",")
}

// report prints what was made, and the commands that follow.
func (p *plan) report(a *cli.App, f certFlags, all []made) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(all)
	case cli.FormatName:
		for _, m := range all {
			if err := a.PrintLine(m.Cert); err != nil {
				return err
			}
		}
		return nil
	}
	a.Say("made the files of %s and %s in %s", cli.Plural(len(p.servers), "server", "servers"),
		cli.Plural(len(p.clients), "client", "clients"), f.dir)
	a.Say("keep %s where nobody else can read it: it makes certificates", f.file("ca.key"))
	if there, err := filepath.Abs(f.dir); err != nil || there != filepath.Clean(p.configDir) {
		a.Say("copy its files to each server:")
		for _, s := range p.servers {
			a.Say("  ssh %s mkdir -p %s", s.hosts[0], cli.Quote(p.configDir))
			a.Say("  scp %s %s.{crt,key,yaml} %s:%s/", cli.Quote(f.file("ca.crt")), cli.Quote(f.file(s.name)),
				scpHost(s.hosts[0]), cli.Quote(p.configDir))
		}
	}
	a.Say("start each one, there:")
	for _, s := range p.servers {
		a.Say("  leasehold serve --config %s", cli.Quote(filepath.Join(p.configDir, s.name+".yaml")))
	}
	if len(p.clients) > 0 {
		env := f.file(p.clients[0] + ".env")
		if f.dir == "." {
			env = "./" + env // a shell would look for it in PATH
		}
		a.Say("one of them writes an admin token to %s: copy it here, and then:", upkeep.TokenFile(p.data))
		a.Say("  . %s && LEASEHOLD_TOKEN_FILE=admin-token leasehold cluster status --wait 1m", cli.Quote(env))
	}
	return nil
}

// scpHost returns a host as scp takes it: an IPv6 address in brackets.
func scpHost(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// keepWith writes a pair, and a file beside it that says how to use it.
func keepWith(f certFlags, name string, pair certificate.Pair, end, text string) (made, error) {
	m, err := write(f, name, pair)
	if err != nil {
		return m, err
	}
	m.Config = f.file(name + end)
	return m, certificate.WriteFile(m.Config, []byte(text), 0o644)
}
