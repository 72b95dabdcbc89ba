package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/tfstate"
)

func (a *app) terraformCommand() *cobra.Command {
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
		RunE: a.onlySubcommands,
	}
	cmd.AddCommand(a.terraformConfigCommand())
	return cmd
}

type terraformConfigFlags struct {
	http bool
	wait span
	azurermFlags
}

func (a *app) terraformConfigCommand() *cobra.Command {
	var f terraformConfigFlags
	cmd := &cobra.Command{
		Use:   "config --http|--azurerm STATE",
		Short: "Print a backend block and environment, ready to paste",
		Long: `Config prints what Terraform and OpenTofu need in order to keep the state STATE on this
server: a backend block for the configuration, and the same as environment variables for
an empty block. A name may have slashes: prod/network. With --wait, runs stand in a queue
for the lock for up to that long, instead of failing.

With --azurerm it is the azurerm backend, for a server that was told --azure-listen: see
"leasehold azure".`,
		Example: `  leasehold terraform config --http prod/network
  leasehold terraform config --azurerm prod.tfstate --azure-address leases.example:8443
  leasehold terraform config --http prod/network --wait 10m -o json | jq -r .backend`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completesStates(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if err := f.check(cmd, args[0]); err != nil {
			return seeHelp(cmd, err)
		}
		setup, text := c.httpBackend(args[0], f.wait), ""
		if f.azurerm {
			var err error
			if setup, err = c.azurermBackend(args[0], &f.azurermFlags); err != nil {
				return seeHelp(cmd, err)
			}
			text = c.azurermText(setup, &f.azurermFlags)
		} else {
			text = setup.text()
		}
		if a.output == formatJSON {
			return a.printJSON(setup)
		}
		_, err := fmt.Fprint(a.stdout, text)
		return written(err)
	})
	cmd.Flags().BoolVar(&f.http, "http", false, "for the http backend")
	f.azurermFlags.add(cmd)
	cmd.Flags().Var(&f.wait, "wait", "let runs wait in a queue for the lock, for so long at most")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON)
	return cmd
}

// check refuses what would print a block that can not work, or not the one that was meant.
func (f *terraformConfigFlags) check(cmd *cobra.Command, state string) error {
	switch {
	case f.http && f.azurerm:
		return usage("config takes --http or --azurerm, not both")
	case !f.http && !f.azurerm:
		return usage("config needs the kind of backend: give --http or --azurerm")
	case f.azurerm && f.wait.given:
		return usage("--wait is for --http: with azurerm, give terraform a -lock-timeout")
	case f.azurerm:
		return nil
	case f.wait.value > leasehold.MaxWait:
		return usage("--wait is %q: %s is the most", f.wait.String(), short(leasehold.MaxWait))
	}
	for _, name := range []string{"by-name", "account", "container", "azure-address"} {
		if cmd.Flags().Changed(name) {
			return usage("--%s is for --azurerm", name)
		}
	}
	return tfstate.CheckState(state)
}

// A backendSetup is how Terraform is told where its state is.
type backendSetup struct {
	Backend     string            `json:"backend"` // a block of a configuration
	Environment map[string]string `json:"environment"`
	Files       map[string]string `json:"files,omitempty"` // variables whose value is what a file holds
	order       []string
	note        string // for who pastes it
}

// httpBackend sets up the http backend. The address is the same for all: the verb decides.
func (c *conn) httpBackend(state string, wait span) backendSetup {
	address := c.stateAddress(state, url.Values{})
	lock := address
	if wait.given {
		lock = c.stateAddress(state, url.Values{"wait": {wait.value.String()}})
	}
	set := [][2]string{{"address", address}, {"lock_address", lock}, {"unlock_address", address}}
	s := backendSetup{Environment: map[string]string{}, Files: c.terraformFiles()}
	block := "terraform {\n  backend \"http\" {\n"
	for _, pair := range set {
		block += fmt.Sprintf("    %-14s = %q\n", pair[0], pair[1])
		name := terraformVariable(pair[0])
		s.Environment[name] = pair[1]
		s.order = append(s.order, name)
	}
	s.Backend = block + "  }\n}\n"
	if len(c.client.Servers) > 1 {
		s.note = "# Terraform takes one address, and this is the first server alone: better give a name or a\n# proxy that leads to all of them.\n"
	}
	return s
}

// terraformFiles are the variables by which Terraform takes certificates: by their content.
func (c *conn) terraformFiles() map[string]string {
	files := map[string]string{}
	for attribute, file := range map[string]string{
		"client_ca_certificate_pem": c.client.TLS.CA, "client_certificate_pem": c.client.TLS.Cert, "client_private_key_pem": c.client.TLS.Key,
	} {
		if file != "" {
			files[terraformVariable(attribute)] = file
		}
	}
	return files
}

// stateAddress is where a state is.
func (c *conn) stateAddress(state string, query url.Values) string {
	if c.client.Namespace != leasehold.DefaultNamespace {
		query.Set("namespace", c.client.Namespace)
	}
	address := c.Asked() + tfstate.Address(state)
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// terraformVariable is the variable by which Terraform takes an attribute of its backend.
func terraformVariable(attribute string) string { return "TF_HTTP_" + strings.ToUpper(attribute) }

func (s backendSetup) text() string {
	text := s.note + "# In the configuration:\n" + s.Backend + "\n# Or with an empty block, backend \"http\" {}, in the environment:\n"
	for _, name := range s.order {
		text += "export " + name + "=" + quote(s.Environment[name]) + "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		text += "export " + name + `="$(cat ` + quote(s.Files[name]) + ")\"\n"
	}
	return text + "\n# Then: terraform init\n"
}
