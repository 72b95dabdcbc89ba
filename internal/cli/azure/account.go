package azure

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
)

// Command returns the command azure, with all below it.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "azure",
		Short: "Manage accounts for clients of Azure Blob Storage",
		Long: `Azure manages accounts and containers for programs that speak Azure Blob Storage: the
azurerm backend of Terraform and OpenTofu, the Azure SDKs, az. A server started with
--azure-listen answers them, and they sign in with the keys of an account.`,
		Example: `  leasehold azure account create prod
  leasehold serve --azure-listen 0.0.0.0:8443 \
      --azure-cert cert.pem --azure-key key.pem
  leasehold azure account rotate prod --key 2`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(account(a), container(a))
	return cmd
}

func account(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "account",
		Short: "Create accounts, rotate their keys, list and remove them",
		Long: `Account works on the file of accounts itself (--azure-accounts), not on a server:
keys are encrypted there with the secret of another file (--azure-secret-file), and
are neither in the log nor in backups. A server reads the file again when it changes.

In a cluster each server needs a copy of both files: copy them after each change.

An account has two keys, so that one can be changed while the other is in use: tell
the clients key 2, rotate key 1, tell them key 1, rotate key 2.`,
		Example: `  leasehold azure account create prod
  leasehold azure account rotate prod --key 2
  leasehold azure account list -o json`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(createAccountCommand(a), rotateAccountCommand(a), listAccountsCommand(a), showAccountCommand(a),
		removeAccountCommand(a))
	return cmd
}

// onBook completes a command that works on the file of accounts.
func onBook(a *cli.App, cmd *cobra.Command, run func(*cli.App, *azureaccount.Book, []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		settings, err := serverSettings(a, cmd)
		if err != nil {
			return err
		}
		book, err := azureaccount.Open(settings.Doors["azure-accounts"], settings.Doors["azure-secret-file"])
		if err != nil {
			return cli.Usage("%v", err)
		}
		return run(a, book, args)
	}
	for _, name := range []string{"azure-accounts", "azure-secret-file", "config"} {
		a.SettingFlag(cmd, name, "")
	}
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

func serverSettings(a *cli.App, cmd *cobra.Command) (config.Server, error) {
	settings, _, err := config.ForServer(a.Sources(cmd))
	if err != nil {
		return config.Server{}, cli.Hint(cli.Usage("%v", err), "all settings: leasehold help configuration")
	}
	return settings.Server, nil
}

func createAccountCommand(a *cli.App) *cobra.Command {
	return onBook(a, &cobra.Command{
		Use:   "create NAME",
		Short: "Create an account with two new keys",
		Long: `Create makes an account and prints its keys. A name has 3 to 24 lower-case letters
and digits. The files are created if they do not exist; only you can read the secret.`,
		Example: `  leasehold azure account create prod
  leasehold azure account create prod --config /etc/leasehold.yaml
  leasehold azure account create prod -o json | jq -r '.keys[0]'`,
		Args: cli.Takes(1, 1),
	}, createAccount)
}

func rotateAccountCommand(a *cli.App) *cobra.Command {
	which := 0
	cmd := onBook(a, &cobra.Command{
		Use:   "rotate NAME",
		Short: "Replace one of the keys of an account",
		Long: `Rotate replaces one of the two keys. Everything signed with the old one, shared access
signatures and tokens included, is refused from then on.`,
		Example: `  leasehold azure account rotate prod
  leasehold azure account rotate prod --key 2
  leasehold azure account rotate prod --key 2 -o json | jq -r '.keys[1]'`,
		Args: cli.Takes(1, 1),
	}, func(a *cli.App, book *azureaccount.Book, args []string) error {
		if _, ok := book.Get(args[0]); !ok {
			return noAccount(book, args[0])
		}
		made, err := book.Rotate(args[0], which, a.Now())
		if err != nil {
			return cli.Usage("%v", err)
		}
		accounts, _ := book.Files()
		a.Say("key %d of %s is new: tell its clients; in a cluster, copy %s to every other server", which, made.Name,
			cli.Quote(accounts))
		return printAccount(a, made)
	})
	cmd.Flags().IntVar(&which, "key", 1, "which of the two: 1 or 2")
	return cmd
}

func listAccountsCommand(a *cli.App) *cobra.Command {
	return onBook(a, &cobra.Command{
		Use:   "list",
		Short: "List the accounts, without their keys",
		Long: `List shows the accounts of the file, when each was created, and since when it has
its keys. The keys themselves are shown by "leasehold azure account show".`,
		Example: `  leasehold azure account list
  leasehold azure account list --config /etc/leasehold.yaml
  leasehold azure account list -o json | jq -r '.[].name'`,
		Args: cli.Takes(0, 0),
	}, listAccounts)
}

func showAccountCommand(a *cli.App) *cobra.Command {
	return onBook(a, &cobra.Command{
		Use:   "show NAME",
		Short: "Show the keys of an account",
		Long: `Show prints both keys of an account in base64, as clients want them: either is as
good as the other. Anybody who has a key can do everything that the account can.`,
		Example: `  leasehold azure account show prod
  leasehold azure account show prod -o json
  export ARM_ACCESS_KEY=$(leasehold azure account show prod -o json |
      jq -r '.keys[0]')`,
		Args: cli.Takes(1, 1),
	}, showAccount)
}

func removeAccountCommand(a *cli.App) *cobra.Command {
	return onBook(a, &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an account; what is kept under its name stays",
		Long: `Remove takes an account and its keys out of the file. Its containers and blobs stay,
and an account that is created under the same name has them again, with new keys.`,
		Example: `  leasehold azure account remove prod
  leasehold azure account remove prod --quiet
  leasehold azure account remove prod --config /etc/leasehold.yaml`,
		Args: cli.Takes(1, 1),
	}, removeAccount)
}

func createAccount(a *cli.App, book *azureaccount.Book, args []string) error {
	made, err := book.Create(args[0], a.Now())
	if err != nil {
		return cli.Usage("%v", err)
	}
	accounts, secret := book.Files()
	a.Say("created %s; in a cluster, copy %s and %s to every other server", made.Name, cli.Quote(accounts),
		cli.Quote(secret))
	return printAccount(a, made)
}

func showAccount(a *cli.App, book *azureaccount.Book, args []string) error {
	found, ok := book.Get(args[0])
	if !ok {
		return noAccount(book, args[0])
	}
	return printAccount(a, found)
}

func removeAccount(a *cli.App, book *azureaccount.Book, args []string) error {
	if _, ok := book.Get(args[0]); !ok {
		return noAccount(book, args[0])
	}
	if err := book.Remove(args[0]); err != nil {
		return cli.Usage("%v", err)
	}
	a.Say("removed %s: nobody can sign in with it from now on; its containers stay", args[0])
	return nil
}

// noAccount returns the error of an unknown account. It names the file that was read, which depends
// on the working directory: the wrong file is the usual cause.
func noAccount(book *azureaccount.Book, name string) error {
	accounts, _ := book.Files()
	return unknownAccount(accounts, name)
}

func unknownAccount(accounts, name string) error {
	return cli.Hint(cli.Failure(leasehold.NotFound, "there is no account %s in %s", name, accounts),
		"see all accounts: leasehold azure account list; another file: --azure-accounts")
}

// An accountShown is what is printed of an account as JSON.
type accountShown struct {
	Name    string   `json:"name"`
	Created string   `json:"created"`
	Rotated []string `json:"rotated"`
	Keys    []string `json:"keys,omitempty"`
}

func shownAccount(of azureaccount.Account, keys bool) accountShown {
	s := accountShown{Name: of.Name, Created: cli.Absolute(of.Created)}
	for i, key := range of.Keys {
		s.Rotated = append(s.Rotated, cli.Absolute(of.Rotated[i]))
		if keys {
			s.Keys = append(s.Keys, base64.StdEncoding.EncodeToString(key))
		}
	}
	return s
}

func printAccount(a *cli.App, of azureaccount.Account) error {
	shown := shownAccount(of, true)
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(shown)
	}
	for i, key := range shown.Keys {
		if err := a.PrintLine(fmt.Sprintf("key%d  %s", i+1, key)); err != nil {
			return err
		}
	}
	return nil
}

func listAccounts(a *cli.App, book *azureaccount.Book, _ []string) error {
	list, rows := []accountShown{}, [][]string{}
	for _, name := range book.Names() {
		found, _ := book.Get(name)
		shown := shownAccount(found, false)
		list = append(list, shown)
		row := []string{name, shown.Created}
		rows = append(rows, append(row, shown.Rotated...))
	}
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(list)
	}
	columns := []cli.Column{{Name: "NAME"}, {Name: "CREATED"}}
	for i := range azureaccount.KeyCount {
		columns = append(columns, cli.Column{Name: "KEY " + strconv.Itoa(i+1) + " SINCE"})
	}
	return a.PrintTable(columns, rows)
}
