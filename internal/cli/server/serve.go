package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/upkeep"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/node"
)

// A serverFunc runs a server until its context ends, and has then finished what was
// under way. It calls ready once, when clients are let in.
type serverFunc func(ctx context.Context, c node.Config, ready func(node.Serving)) error

// An Outside is what the commands of this package start and touch. Tests replace it, since they
// should neither listen on ports nor fill a disk.
type Outside struct {
	Serve serverFunc
	check checkFunc
	// createTemp makes a file that gets its name later.
	createTemp func(dir, pattern string) (file, error)
}

// RealOutside returns the real thing, as users get it.
func RealOutside() Outside {
	return Outside{Serve: node.Run, check: checkData, createTemp: createTemp}
}

// Serve returns the command serve.
func Serve(a *cli.App, o Outside) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server",
		Long: `Serve runs a server on one address and keeps its data in one directory. It answers a
request only once the result is durable: a server that is killed, or loses power, comes
back with every lease that it had granted.

Several servers form a cluster. --initial-cluster begins a new one, with the same list
on each server; --join adds a server to a running one, in the place that "leasehold
cluster add" prepared for it. Once a server has data, the data say which cluster it
belongs to, and both flags are ignored. Servers authenticate each other by certificates
(leasehold cert); without them they must run on one machine, and need --insecure.

On SIGTERM or ctrl-C it finishes what is under way, tells waiting clients to ask again,
and hands over if it leads; no lease ends because of a restart. A second signal ends it
at once, which costs nothing but those answers.

With --access only those may do something who prove who they are, and only what rules
allow. The first start of a cluster writes an admin token to the file admin-token in the
data directory of one server; "leasehold access" changes the rules. A server without the
flag obeys the rules of its cluster, too. An address that other machines can reach needs
TLS and --access, or --insecure, which says that you trust everybody who can reach it.

Each flag can also be set by its variable or in a YAML file: see "leasehold help
configuration", and "leasehold config show --origin" for what is in effect.`,
		Example: `  leasehold serve
  leasehold serve --access
  leasehold serve --config /etc/leasehold.yaml --listen 0.0.0.0:4653 --insecure
  leasehold serve --config n4.yaml --name n4 --peer-listen 10.0.0.4:4654 \
      --join 10.0.0.1:4654`,
		Args: cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(a, cmd, o.Serve) },
	}
	serveFlags(a, cmd)
	return cmd
}

func serveFlags(a *cli.App, cmd *cobra.Command) {
	for _, key := range config.ServerKeys(a.Doors...) {
		a.SettingFlag(cmd, key.Name, "")
	}
}

func runServe(a *cli.App, cmd *cobra.Command, serve serverFunc) error {
	settings, _, err := config.ForServer(a.Sources(cmd))
	if err != nil {
		return cli.Hint(cli.Usage("%v", err), "all settings: leasehold help configuration")
	}
	// A program that reads JSON from standard error must find nothing else there.
	a.Quiet = a.Quiet || settings.Server.LogFormat == cli.FormatJSON
	ctx := cmd.Context()
	defer context.AfterFunc(ctx, func() {
		a.Say("stopping: finishing what is under way; a second signal ends it at once")
	})()
	what := "the server could not start"
	err = serve(ctx, node.Config{Server: settings.Server, Version: a.Version, Log: a.Stderr}, func(s node.Serving) {
		what = "the server stopped"
		greet(a, s, settings.Server)
	})
	var known *leasehold.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return cli.Failure(leasehold.Unavailable, "%s: %v", what, err)
}

// greet says where the server is and what to do first. Where log lines are JSON, it is one of them,
// so that a collector can parse every line.
func greet(a *cli.App, s node.Serving, settings config.Server) {
	url := settings.URL(s.Address)
	data, err := filepath.Abs(settings.Data)
	if err != nil {
		data = settings.Data
	}
	if settings.LogFormat == cli.FormatJSON {
		slog.New(slog.NewJSONHandler(a.Stderr, nil)).Info("leasehold serves", "url", url, "data", data, "insecure",
			settings.Insecure, "access", s.Access, "console", consoleURL(url, settings))
		return
	}
	a.Say("leasehold serves on %s, data in %s", url, data)
	a.Say("%s", whoMay(s, settings))
	if at := consoleURL(url, settings); at != "" {
		a.Say("the console is at %s", at)
	}
	a.Say("try: %s%s acquire my/first --ttl 1m%s%s", tokenVariable(s, settings), calledAs(), serverFlag(url),
		trustFlags(settings))
}

// whoMay says who may use the server.
func whoMay(s node.Serving, settings config.Server) string {
	switch {
	case s.Access && hasToken(settings):
		return "access is on: the admin token is in " + upkeep.TokenFile(settings.Data)
	case s.Access:
		return "access is on: log in with leasehold login"
	case settings.TLS.CA != "" && settings.Local():
		return "everybody with a certificate may do everything: --access turns rules on"
	case settings.TLS.CA != "":
		return "warning: everybody with a certificate may do everything (--insecure): --access turns rules on"
	case settings.Local():
		return "anybody on this machine may do everything: --access turns rules on"
	}
	return "warning: anybody who can reach it may do everything (--insecure): --access turns rules on"
}

func hasToken(settings config.Server) bool {
	_, err := os.Stat(upkeep.TokenFile(settings.Data))
	return err == nil
}

// tokenVariable is how a command finds the admin token, if there is one here.
func tokenVariable(s node.Serving, settings config.Server) string {
	if !s.Access || !hasToken(settings) {
		return ""
	}
	return "LEASEHOLD_TOKEN_FILE=" + cli.Quote(upkeep.TokenFile(settings.Data)) + " "
}

// trustFlags returns the flags that a client needs to be admitted and to verify the server.
func trustFlags(settings config.Server) string {
	switch {
	case settings.TLS.Cert == "":
		return ""
	case settings.TLS.CA == "":
		return " --ca FILE"
	}
	return " --ca FILE --cert FILE --key FILE"
}

// calledAs returns how to call this program from the shell that called it: by its path, if the
// shell would not find it by its name.
func calledAs() string {
	const name = "leasehold"
	if _, err := exec.LookPath(name); err == nil || !strings.ContainsRune(os.Args[0], filepath.Separator) {
		return name
	}
	return os.Args[0]
}

// serverFlag returns the flag that a client needs to find the server, which is often none.
func serverFlag(url string) string {
	key, _ := config.Lookup("server")
	if url == key.Default {
		return ""
	}
	return fmt.Sprintf(" --server %s", dialled(url))
}

// dialled returns the URL of a server on this machine as clients here can use it: a wildcard cannot be dialled.
func dialled(url string) string {
	return strings.NewReplacer("//0.0.0.0:", "//127.0.0.1:", "//[::]:", "//127.0.0.1:").Replace(url)
}

// consoleURL is the address of the console; empty: it is turned off.
func consoleURL(url string, settings config.Server) string {
	if settings.Doors["console"] == "false" {
		return ""
	}
	return dialled(url) + "/"
}
