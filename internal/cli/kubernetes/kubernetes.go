// Package kubernetes has the commands that set clients of Kubernetes up to keep their Leases on a server.
package kubernetes

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/internal/cli"
)

// Command returns the command kubernetes, with all below it.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubernetes COMMAND",
		Short: "Set up kubectl and electors of Kubernetes to keep Leases here",
		Long: `Programs that keep Leases of Kubernetes (coordination.k8s.io/v1) can keep them on this
server, unchanged: leader election of client-go and controller-runtime, and kubectl. These
commands set them up. The Lease NAMESPACE/NAME is the resource kubernetes/NAMESPACE/NAME,
whose holder, history and token every other command shows.`,
		Example: `  leasehold kubernetes config > leasehold.kubeconfig
  kubectl --kubeconfig leasehold.kubeconfig get leases -A
  leasehold describe kubernetes/apps/my-operator`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(configure(a), credential(a))
	return cmd
}

// A kubeconfig is the file that clients of Kubernetes read.
type kubeconfig struct {
	APIVersion string  `yaml:"apiVersion" json:"apiVersion"`
	Kind       string  `yaml:"kind" json:"kind"`
	Clusters   []named `yaml:"clusters" json:"clusters"`
	Users      []named `yaml:"users" json:"users"`
	Contexts   []named `yaml:"contexts" json:"contexts"`
	Current    string  `yaml:"current-context" json:"current-context"`
}

// A named entry is a cluster, a user or a context.
type named struct {
	Name    string         `yaml:"name" json:"name"`
	Cluster map[string]any `yaml:"cluster,omitempty" json:"cluster,omitempty"`
	User    map[string]any `yaml:"user,omitempty" json:"user,omitempty"`
	Context map[string]any `yaml:"context,omitempty" json:"context,omitempty"`
}

const name = "leasehold" // of everything in the file

// configure prints a kubeconfig.
func configure(a *cli.App) *cobra.Command {
	space := "default"
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print a kubeconfig",
		Long: `Config prints a kubeconfig: the server, the authority to trust, and the credential to use. It
names the file of a token, so the kubeconfig itself is no secret; a token from a login or from
LEASEHOLD_TOKEN is fetched by "leasehold kubernetes credential" each time. Clients of
Kubernetes send tokens only to servers with TLS.

A kubeconfig has one server. For a cluster, use the name of a load balancer, or a name that
resolves to all servers: any of them answers.`,
		Example: `  leasehold kubernetes config > leasehold.kubeconfig
  leasehold kubernetes config --server https://leases.example:4653 \
      --ca ca.crt --token-file token --in apps
  leasehold kubernetes config -o json`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(_ context.Context, c *cli.Conn, _ []string) error {
		file, err := kubeconfigOf(c, space)
		if err != nil {
			return err
		}
		warnOfTokenWithoutTLS(a, c)
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(file)
		}
		text, err := yaml.Marshal(file)
		if err == nil {
			_, err = a.Stdout.Write(text)
		}
		return err
	})
	cmd.Flags().StringVar(&space, "in", space, "the Kubernetes namespace of the context")
	a.ServerFlags(cmd)
	outputFlag(a, cmd, cli.FormatYAML, cli.FormatJSON)
	return cmd
}

// warnOfTokenWithoutTLS says that a kubeconfig is of no use where the server asks for its token: clients of
// Kubernetes leave the token out, and the server then answers that there is none.
func warnOfTokenWithoutTLS(a *cli.App, c *cli.Conn) {
	if c.Client.Token != nil && strings.HasPrefix(c.Client.Server, "http://") {
		a.Say("warning: clients of Kubernetes send tokens only to servers with TLS: they will not send this one to %s",
			c.Client.Server)
	}
}

// kubeconfigOf returns the file for the servers that a command talks to.
func kubeconfigOf(c *cli.Conn, space string) (*kubeconfig, error) {
	server := strings.Split(c.Client.Server, ",")[0]
	cluster := map[string]any{"server": server}
	if file := c.Client.TLS.CA; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		cluster["certificate-authority-data"] = base64.StdEncoding.EncodeToString(text)
	}
	user, err := userOf(c, server)
	if err != nil {
		return nil, err
	}
	return &kubeconfig{
		APIVersion: "v1", Kind: "Config", Current: name,
		Clusters: []named{{Name: name, Cluster: cluster}}, Users: []named{{Name: name, User: user}},
		Contexts: []named{{Name: name, Context: map[string]any{"cluster": name, "user": name, "namespace": space}}},
	}, nil
}

// userOf returns how a client proves who it is.
func userOf(c *cli.Conn, server string) (map[string]any, error) {
	user := map[string]any{}
	files := map[string]string{"client-certificate": c.Client.TLS.Cert, "client-key": c.Client.TLS.Key,
		"tokenFile": c.Client.TokenFile}
	for key, file := range files {
		if file == "" {
			continue
		}
		whole, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		user[key] = whole
	}
	if c.Client.Token != nil && c.Client.TokenFile == "" {
		user["exec"] = map[string]any{
			"apiVersion": execVersion, "command": "leasehold", "interactiveMode": "IfAvailable",
			"args": append([]string{"kubernetes", "credential", "--server", server}, contextArgs(c)...),
		}
	}
	return user, nil
}

// contextArgs names the context that a login belongs to.
func contextArgs(c *cli.Conn) []string {
	if c.Client.Context == "" {
		return nil
	}
	return []string{"--context", c.Client.Context}
}

// execVersion is that of the answers of programs that clients of Kubernetes ask for credentials.
const execVersion = "client.authentication.k8s.io/v1"

// credential is the program that a kubeconfig names.
func credential(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "credential",
		Short: "Print the token of your login, as clients of Kubernetes ask for it",
		Long: `Credential is what the kubeconfig of "leasehold kubernetes config" names as the program that
knows the token (exec). It prints a secret.`,
		Example: `  leasehold kubernetes credential
  leasehold kubernetes credential --server https://leases.example:4653
  leasehold kubernetes credential --context prod`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		if c.Client.Token == nil {
			return cli.Usage("there is no token: log in with leasehold login, or give --token-file")
		}
		token, err := c.Client.Token(ctx)
		if err != nil {
			return err
		}
		return a.PrintCompact(map[string]any{"apiVersion": execVersion, "kind": "ExecCredential",
			"status": map[string]string{"token": token}})
	})
	a.ServerFlags(cmd)
	outputFlag(a, cmd, cli.FormatJSON)
	return cmd
}

// outputFlag gives a command the flag -o, whose default is the first format: clients of Kubernetes read the output.
func outputFlag(a *cli.App, cmd *cobra.Command, formats ...string) {
	flag := cmd.Flags().VarPF(&cli.Choice{Value: &a.Output, Allowed: formats, Kind: "format"}, "output", "o",
		"how to print: "+strings.Join(formats, ", "))
	flag.DefValue = formats[0]
	cli.CompleteFlag(cmd, "output", formats)
}
