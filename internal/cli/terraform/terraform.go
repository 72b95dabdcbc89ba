package terraform

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/state"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// Command returns the command terraform, with all below it.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "terraform COMMAND",
		Short: "Set up Terraform or OpenTofu to keep its state here",
		Long: `Terraform helps to set up Terraform and OpenTofu, unchanged, so that they keep their states
on this server, with locks that show who has them, can expire, and are waited for in a
queue. Leasehold state looks after the states then.`,
		Example: `  leasehold terraform config --http prod/network
  leasehold terraform config --http prod/network -o json
  leasehold run --terraform prod/network -- terraform apply`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(configure(a))
	return cmd
}

type configFlags struct {
	http bool
	wait cli.Span
	azurermFlags
}

func configure(a *cli.App) *cobra.Command {
	var f configFlags
	cmd := &cobra.Command{
		Use:   "config --http|--azurerm STATE",
		Short: "Print a backend block, or the same as environment variables",
		Long: `Config prints what Terraform and OpenTofu need in order to keep the state STATE on this
server: a backend block in a file of its own, or with -o shell the same as environment
variables, which go with an empty block, backend "http" {}. A name may have slashes:
prod/network. With --wait, runs queue for the lock for up to that long instead of
failing.

With --azurerm it is the azurerm backend, for a server that was started with
--azure-listen: see "leasehold azure".

Leasehold run --terraform sets the variables itself and needs the empty block.`,
		Example: `  leasehold terraform config --http prod/network > backend.tf
  eval "$(leasehold terraform config --http prod/network --wait 10m -o shell)"
  leasehold terraform config --azurerm prod.tfstate \
      --azure-address leases.example:8443 > backend.tf`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: state.Completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := f.check(cmd, args[0]); err != nil {
			return cli.SeeHelp(cmd, err)
		}
		setup := httpBackend(c, args[0], f.wait)
		if f.azurerm {
			var err error
			if setup, err = azurermBackend(c, args[0], &f.azurermFlags); err != nil {
				return cli.SeeHelp(cmd, err)
			}
		}
		return setup.print(a)
	})
	cmd.Flags().BoolVar(&f.http, "http", false, "for the http backend")
	f.azurermFlags.add(cmd)
	cmd.Flags().Var(&f.wait, "wait", "let runs wait in a queue for the lock, at most this long")
	a.ClientFlags(cmd)
	formatFlag(a, cmd)
	return cmd
}

// check refuses what would print a block that cannot work, or not the one that was meant.
func (f *configFlags) check(cmd *cobra.Command, state string) error {
	switch {
	case f.http && f.azurerm:
		return cli.Usage("config takes --http or --azurerm, not both")
	case !f.http && !f.azurerm:
		return cli.Usage("config needs the kind of backend: give --http or --azurerm")
	case f.azurerm && f.wait.Given:
		return cli.Usage("--wait is for --http: with azurerm, give terraform a -lock-timeout")
	case f.azurerm:
		return nil
	case f.wait.Value > leasehold.MaxWait:
		return cli.Usage("--wait is %q: %s is the most", f.wait.String(), cli.Short(leasehold.MaxWait))
	}
	for _, name := range []string{"by-name", "account", "container", "azure-address"} {
		if cmd.Flags().Changed(name) {
			return cli.Usage("--%s is for --azurerm", name)
		}
	}
	return tfstate.CheckState(state)
}

// httpBackend returns the setup of the http backend. One address serves for all: the HTTP method
// tells reading, writing and locking apart.
func httpBackend(c *cli.Conn, state string, wait cli.Span) backendSetup {
	address := Address(c, state, url.Values{})
	lock := address
	if wait.Given {
		lock = Address(c, state, url.Values{"wait": {wait.Value.String()}})
	}
	set := [][2]string{{"address", address}, {"lock_address", lock}, {"unlock_address", address}}
	s := backendSetup{Environment: map[string]string{}, Files: Files(c), values: map[string]string{}}
	block := "terraform {\n  backend \"http\" {\n"
	for _, pair := range set {
		block += fmt.Sprintf("    %-14s = %q\n", pair[0], pair[1])
		name := Variable(pair[0])
		s.Environment[name], s.values[name] = pair[1], cli.Quote(pair[1])
		s.order = append(s.order, name)
	}
	s.Backend = block + "  }\n}\n"
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		s.values[name] = `"$(cat ` + cli.Quote(s.Files[name]) + `)"`
		s.order, s.beside = append(s.order, name), append(s.beside, name)
	}
	if len(s.Files) > 0 {
		s.secret = "certificates have several lines"
	}
	if len(c.Client.Servers) > 1 {
		s.notes = append(s.notes, "Terraform takes one address, and this is the first server alone: better give it a "+
			"name or a proxy that leads to all of them")
	}
	return s
}

// Files returns the certificate files by the variable in which Terraform expects their contents.
func Files(c *cli.Conn) map[string]string {
	files := map[string]string{}
	for attribute, file := range map[string]string{
		"client_ca_certificate_pem": c.Client.TLS.CA, "client_certificate_pem": c.Client.TLS.Cert,
		"client_private_key_pem": c.Client.TLS.Key,
	} {
		if file != "" {
			files[Variable(attribute)] = file
		}
	}
	return files
}

// Address returns the URL of a state.
func Address(c *cli.Conn, state string, query url.Values) string {
	if c.Client.Namespace != leasehold.DefaultNamespace {
		query.Set("namespace", c.Client.Namespace)
	}
	address := c.Asked() + tfstate.Address(state)
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// Variable returns the environment variable that sets an attribute of Terraform's http backend.
func Variable(attribute string) string { return "TF_HTTP_" + strings.ToUpper(attribute) }
