package cert

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
)

// Command returns the command cert, with all below it.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cert",
		Short: "Make and show certificates for servers and clients",
		Long: `Cert makes an authority, and certificates of it for servers and clients. It needs no
server and no network: the authority is a file, and everybody who has its key can make
certificates, so keep the key off the servers.

A server's certificate is for its clients and for the other servers. A client's lets a
client in where a server asks for one (serve --tls-client-ca). Files that are replaced
are used from the next connection on; nothing has to be restarted.`,
		Example: `  leasehold cert cluster n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3 --client ann
  leasehold cert client bob
  leasehold cert show certs/*.crt`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(makeCluster(a), makeAuthority(a), makeServer(a), makeClient(a), show(a))
	return cmd
}

// certFlags is what the commands have in common that make something.
type certFlags struct {
	dir   string
	lasts cli.Span
	force bool
}

func (f *certFlags) on(cmd *cobra.Command, lasts time.Duration) {
	f.lasts = cli.SpanOf(lasts)
	cmd.Flags().StringVar(&f.dir, "dir", "certs", "directory of the certificates; made if it does not exist")
	cmd.Flags().Var(&f.lasts, "lasts", "how long it is good for")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace existing files")
	if err := cmd.MarkFlagDirname("dir"); err != nil {
		panic(err) // the flag was just made
	}
}

func (f *certFlags) file(name string) string { return filepath.Join(f.dir, name) }

func makeAuthority(a *cli.App) *cobra.Command {
	var f certFlags
	var name string
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Make an authority, which signs all other certificates",
		Long: `Ca makes an authority: ca.crt, which everybody needs to know whom to trust, and ca.key,
which only the person who makes certificates needs. The key opens every
server, so keep it apart from them.

The authority is good for ten years, unless --lasts says otherwise. Existing files
are not replaced without --force: what the old authority signed would be worth
nothing.`,
		Example: `  leasehold cert ca
  leasehold cert ca --dir /root/leasehold-ca --name leasehold-eu
  leasehold cert ca --lasts 365d -o json`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		pair, err := certificate.NewAuthority(certificate.Request{Name: name, Lasts: f.lasts.Value, Now: a.Now()})
		if err != nil {
			return cli.Usage("%v", err)
		}
		if err := keep(a, f, "ca", pair); err != nil {
			return err
		}
		a.Say("keep %s where nobody else can read it: it makes certificates", f.file("ca.key"))
		a.Say("next: leasehold cert server n1 HOST%s", f.flag())
		return nil
	}
	f.on(cmd, certificate.AuthorityLasts)
	cmd.Flags().StringVar(&name, "name", "leasehold", "what the authority is called")
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// flag returns the flag that another command needs to find the same directory.
func (f *certFlags) flag() string {
	if f.dir == "certs" {
		return ""
	}
	return " --dir " + cli.Quote(f.dir)
}

func makeServer(a *cli.App) *cobra.Command {
	var f certFlags
	cmd := &cobra.Command{
		Use:   "server NAME [HOST...]",
		Short: "Make a certificate for a server",
		Long: `Server makes a certificate for the server of that name (serve --name), as NAME.crt and
NAME.key. Each HOST is a name or an address, without a port, at which clients reach
it; the loopback addresses are always among them.

It is for both ports: give the same files as --tls-cert and --tls-key, and as
--peer-cert and --peer-key. The other servers look for NAME in it. To renew it, make
it again with --force; the server takes it by itself.`,
		Example: `  leasehold cert server n1 10.0.0.1 n1.example
  leasehold cert server n2 10.0.0.2 --dir /root/leasehold-ca --lasts 90d
  leasehold cert server n1 10.0.0.1 --force`,
		Args: cli.Takes(1, -1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return issue(a, f, args[0], func(ca *certificate.Authority) (certificate.Pair, error) {
			return ca.Server(serverRequest(a, f, args[0], args[1:]))
		})
	}
	f.on(cmd, certificate.DefaultLasts)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// serverRequest asks for a server's certificate, which is also for the loopback addresses: commands
// are given on the server's own machine, too.
func serverRequest(a *cli.App, f certFlags, name string, hosts []string) certificate.Request {
	hosts = slices.Clone(hosts)
	for _, own := range []string{"localhost", "127.0.0.1", "::1"} {
		if !slices.Contains(hosts, own) {
			hosts = append(hosts, own)
		}
	}
	return certificate.Request{Name: name, Hosts: hosts, Lasts: f.lasts.Value, Now: a.Now()}
}

func makeClient(a *cli.App) *cobra.Command {
	var f certFlags
	cmd := &cobra.Command{
		Use:   "client NAME",
		Short: "Make a certificate for a client",
		Long: `Client makes a certificate for a client, as NAME.crt and NAME.key. Servers that
were started with --tls-client-ca admit clients that have one. It is not for servers,
and does not open the port by which they talk to each other.

Give the files to commands as --cert and --key, or as LEASEHOLD_CERT and LEASEHOLD_KEY,
with ca.crt as --ca or LEASEHOLD_CA.`,
		Example: `  leasehold cert client ann
  leasehold cert client ci --lasts 30d
  leasehold list --ca certs/ca.crt --cert certs/ann.crt --key certs/ann.key`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return issue(a, f, args[0], func(ca *certificate.Authority) (certificate.Pair, error) {
			return ca.Client(certificate.Request{Name: args[0], Lasts: f.lasts.Value, Now: a.Now()})
		})
	}
	f.on(cmd, certificate.DefaultLasts)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// issue makes a certificate of the authority in the directory.
func issue(a *cli.App, f certFlags, name string, make func(*certificate.Authority) (certificate.Pair, error)) error {
	if name == "ca" {
		return cli.Usage("ca is the authority's own name here: choose another one")
	}
	ca, err := openAuthority(f)
	if err != nil {
		return err
	}
	pair, err := make(ca)
	if err != nil {
		return cli.Usage("%v", err)
	}
	return keep(a, f, name, pair)
}

func openAuthority(f certFlags) (*certificate.Authority, error) {
	ca, err := certificate.OpenAuthority(f.file("ca.crt"), f.file("ca.key"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, cli.Hint(cli.Failure(leasehold.NotFound, "there is no authority in %s: %v", f.dir, err),
			"make one first: leasehold cert ca%s", f.flag())
	case err != nil:
		return nil, cli.Usage("%v", err)
	}
	return ca, nil
}

// made is what a command prints as JSON that made a certificate.
type made struct {
	Cert   string  `json:"cert"`
	Key    string  `json:"key"`
	Config string  `json:"config,omitempty"` // of cert cluster: the configuration, or the environment of a client
	Ends   v1.Time `json:"ends"`

	hosts []string // that it is for
}

// write writes a pair of files.
func write(f certFlags, name string, pair certificate.Pair) (made, error) {
	m := made{Cert: f.file(name + ".crt"), Key: f.file(name + ".key")}
	var exists *certificate.ExistsError
	err := pair.Write(m.Cert, m.Key, f.force)
	switch {
	case errors.As(err, &exists):
		return m, cli.Hint(cli.Usage("%v: nothing was written", err), "to replace it give --force; to see what it is: "+
			"leasehold cert show %s", cli.Quote(m.Cert))
	case err != nil:
		return m, cli.Failure(leasehold.Refused, "%v: nothing was made", err)
	}
	list, err := certificate.Read(m.Cert)
	if err != nil {
		return m, err
	}
	m.Ends, m.hosts = v1.Time{Time: list[0].NotAfter}, hostsOf(list[0])
	return m, nil
}

// keep writes a pair of files, and says where they are.
func keep(a *cli.App, f certFlags, name string, pair certificate.Pair) error {
	m, err := write(f, name, pair)
	if err != nil {
		return err
	}
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(m)
	case cli.FormatName:
		return a.PrintLine(m.Cert)
	}
	hosts := ""
	if len(m.hosts) > 0 {
		hosts = " for " + strings.Join(m.hosts, ", ") // a host that a renewal forgot is missed here
	}
	a.Say("made %s and %s%s, good until %s", m.Cert, m.Key, hosts, day(a, m.Ends.Time))
	return nil
}

func show(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show FILE...",
		Short: "Show what certificates are for, and when they end",
		Long: `Show reads certificates and shows whose they are, what they are for, at which names and
addresses, who signed them, and when they end. It reads any certificate in PEM, also
those that were not made here.

It ends with code 0 if all of them are good now, and with code 1 if one has ended or is
not good yet, for monitoring.`,
		Example: `  leasehold cert show certs/n1.crt
  leasehold cert show certs/*.crt
  leasehold cert show certs/n1.crt -o json | jq -r '.[0].ends'`,
		Args: cli.Takes(1, -1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		found := []shownCert{}
		for _, name := range args {
			list, err := certificate.Read(name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return cli.Failure(leasehold.NotFound, "%v", err)
			case err != nil:
				return cli.Usage("%v", err)
			}
			for _, cert := range list {
				found = append(found, toShownCert(a, name, cert))
			}
		}
		return printCerts(a, found)
	}
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// A shownCert is what cert show prints as JSON.
type shownCert struct {
	File   string   `json:"file"`
	Name   string   `json:"name"`
	For    string   `json:"for"` // authority, server, client, or another
	Hosts  []string `json:"hosts,omitempty"`
	By     string   `json:"by"`
	Begins v1.Time  `json:"begins"`
	Ends   v1.Time  `json:"ends"`
	Good   bool     `json:"good"` // now
}

func toShownCert(a *cli.App, file string, cert *x509.Certificate) shownCert {
	s := shownCert{
		File: file, Name: cert.Subject.CommonName, For: purpose(cert), By: cert.Issuer.CommonName, Hosts: hostsOf(cert),
		Begins: v1.Time{Time: cert.NotBefore}, Ends: v1.Time{Time: cert.NotAfter},
		Good: !a.Now().Before(cert.NotBefore) && !a.Now().After(cert.NotAfter),
	}
	return s
}

// hostsOf returns the names and addresses that a certificate is for.
func hostsOf(cert *x509.Certificate) []string {
	hosts := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// day returns a date, with the time of day if it is near: the day alone would not say whether it is
// over.
func day(a *cli.App, t time.Time) string {
	if t.Sub(a.Now()).Abs() < 48*time.Hour {
		return cli.Absolute(t)
	}
	return t.Format(time.DateOnly)
}

func purpose(cert *x509.Certificate) string {
	if cert.IsCA {
		return "authority"
	}
	var client bool
	for _, usage := range cert.ExtKeyUsage {
		switch usage {
		case x509.ExtKeyUsageServerAuth:
			return "server"
		case x509.ExtKeyUsageClientAuth:
			client = true
		}
	}
	if client {
		return "client"
	}
	return "something else"
}

// soon is when somebody should think of the next certificate.
const soon = 30 * 24 * time.Hour

func printCerts(a *cli.App, found []shownCert) error {
	if a.Output == cli.FormatJSON {
		if err := a.PrintJSON(found); err != nil {
			return err
		}
		return badCerts(found)
	}
	var rows [][]string
	for _, s := range found {
		rows = append(rows, []string{s.File, s.For, s.Name, strings.Join(s.Hosts, " "), s.By, ends(a, s)})
	}
	columns := []cli.Column{{Name: "FILE"}, {Name: "FOR"}, {Name: "NAME"}, {Name: "HOSTS", Flexible: true},
		{Name: "BY"}, {Name: "ENDS"}}
	if err := a.PrintTable(columns, rows); err != nil {
		return err
	}
	for _, s := range found {
		if left := s.Ends.Sub(a.Now()); s.Good && left < soon {
			a.Say("%s ends in %s: make it again with --force", s.File, cli.Short(left))
		}
	}
	return badCerts(found)
}

func ends(a *cli.App, s shownCert) string {
	switch left := s.Ends.Sub(a.Now()); {
	case left < 0:
		return fmt.Sprintf("%s, %s", s.Ends.Format(time.DateOnly), a.Ago(s.Ends.Time))
	case !s.Good:
		return fmt.Sprintf("begins %s", s.Begins.Format(time.DateOnly))
	default:
		days := int(left / (24 * time.Hour))
		if days == 0 {
			return fmt.Sprintf("%s, in %s", day(a, s.Ends.Time), cli.Short(left))
		}
		return fmt.Sprintf("%s, in %dd", day(a, s.Ends.Time), days)
	}
}

func badCerts(found []shownCert) error {
	var bad []string
	for _, s := range found {
		if !s.Good {
			bad = append(bad, s.File)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return cli.Alarmed("not good now: " + strings.Join(bad, ", "))
}
