package terraform

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
)

// azurermFlags say where Azure's clients find a server.
type azurermFlags struct {
	azurerm   bool
	byName    bool
	account   string
	container string
	address   string
}

func (f *azurermFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.azurerm, "azurerm", false, "for the azurerm backend, and a server with --azure-listen")
	flags.BoolVar(&f.byName, "by-name", false, "azurerm: find the account by its name, ACCOUNT.blob.DOMAIN, instead "+
		"of by address")
	flags.StringVar(&f.account, "account", "leasehold", "azurerm: the account")
	flags.StringVar(&f.container, "container", "tfstate", "azurerm: the container")
	flags.StringVar(&f.address, "azure-address", "", "azurerm: host:port of --azure-listen; empty: port 8443 of "+
		"--server")
}

// azurermAddress returns the address at which the server talks to Azure's clients.
func azurermAddress(c *cli.Conn, f *azurermFlags) (string, error) {
	if f.address != "" {
		if _, _, err := net.SplitHostPort(f.address); err != nil {
			return "", cli.Usage("--azure-address is %q: write it as host:port", f.address)
		}
		return f.address, nil
	}
	server, _, _ := strings.Cut(c.Client.Server, ",")
	u, err := url.Parse(server)
	if err != nil {
		return "", cli.Usage("--server is %q: give --azure-address", server)
	}
	return net.JoinHostPort(u.Hostname(), "8443"), nil
}

// azurermBackend sets up the azurerm backend: by the address of a server alone, with
// tokens; or by the account's name, which somebody has to resolve, with its key.
func azurermBackend(c *cli.Conn, state string, f *azurermFlags) (backendSetup, error) {
	address, err := azurermAddress(c, f)
	if err != nil {
		return backendSetup{}, err
	}
	set := [][2]string{
		{"metadata_host", address}, {"storage_account_name", f.account}, {"container_name", f.container}, {"key",
			state},
	}
	if !f.byName {
		set = append(set, [][2]string{
			{"lookup_blob_endpoint", "true"}, {"use_azuread_auth", "true"}, {"use_cli",
				"false"}, {"resource_group_name", "leasehold"},
			{"subscription_id", "00000000-0000-0000-0000-000000000001"}, {"tenant_id",
				"00000000-0000-0000-0000-00000000000a"},
			{"client_id", "00000000-0000-0000-0000-00000000000b"},
		}...)
	}
	block := "terraform {\n  backend \"azurerm\" {\n"
	for _, pair := range set {
		value := fmt.Sprintf("%q", pair[1])
		if pair[1] == "true" || pair[1] == "false" {
			value = pair[1]
		}
		block += fmt.Sprintf("    %-20s = %s\n", pair[0], value)
	}
	secret := "ARM_CLIENT_SECRET"
	if f.byName {
		secret = "ARM_ACCESS_KEY"
	}
	key := `"$(leasehold azure account show ` + cli.Quote(f.account) + ` -o json | jq -r '.keys[0]')"`
	setup := backendSetup{
		Backend:     block + "  }\n}\n",
		Environment: map[string]string{secret: "", "SSL_CERT_FILE": ""},
		order:       []string{secret, "SSL_CERT_FILE"},
		// The key is looked up when it is needed: printed, it would stay in the terminal's history.
		values: map[string]string{secret: key, "SSL_CERT_FILE": "certs/ca.crt"},
		beside: []string{secret, "SSL_CERT_FILE"},
		secret: "the account's key is a secret",
		notes: []string{
			"once, where the accounts are kept: leasehold azure account create " + cli.Quote(f.account),
			"once, where a server can be reached: " + c.Again("azure", "container", "create", f.account, f.container),
			"SSL_CERT_FILE is the authority behind --azure-cert; leave it out if the system trusts that",
		},
	}
	if f.byName {
		setup.notes = append(setup.notes, "the name "+f.account+".blob.DOMAIN, with the server's --azure-domain, must "+
			"resolve to the server")
	}
	return setup, nil
}
