package server

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/demo"
	"github.com/leasehold/leasehold/internal/node"
)

// demoFlags are those of the command demo.
type demoFlags struct {
	listen string
	lasts  cli.Span
	seed   uint64
}

func (f *demoFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "loopback address to listen on (default: 127.0.0.1:4653 if it is free, "+
		"else any free port)")
	flags.Var(&f.lasts, "for", "how long it lasts (default: until ctrl-C)")
	flags.Uint64Var(&f.seed, "seed", 1, "number that all choices of the scenario follow from")
}

// Demo returns the command demo.
func Demo(a *cli.App, o Outside) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the console alive, on a server of its own",
		Long: `Demo starts a server on this machine and plays a scenario on it: CI jobs, a fight for
one deployment, Terraform states, GPU jobs in a pool, agents on the same code, a leader
that changes, and a job that dies and leaves its lease behind. Open the address that it
prints in a browser, or point other commands at it with --server.

Nothing is faked: history begins when the demo does. The work of the first minute is
short, so that there is soon something to see. The server keeps its data in a temporary
directory, which is removed at the end; your own servers and settings are not touched.

It ends after --for, or with ctrl-C. With -o json it prints one object when the server is
ready, with the addresses of the server and of its console.`,
		Example: `  leasehold demo
  leasehold demo --for 10m --seed 7
  leasehold demo --listen 127.0.0.1:0 -o json | jq -r .console`,
		Args: cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), a, o.Serve, f) },
	}
	f.add(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// demoAddress is where a demo listens unless it is told: where every command looks first, or else anywhere.
func demoAddress() string {
	const usual = "127.0.0.1:4653"
	l, err := net.Listen("tcp", usual)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return usual
}

// demoSettings are those of the server. The environment and files are left out: they may be about a real one.
func demoSettings(a *cli.App, listen, data string) (config.Server, error) {
	flags := map[string]string{
		"listen": listen, "data": data, "min-free": "1MiB", "drain-linger": "0s", "log-level": "warn",
	}
	if a.Output == cli.FormatJSON {
		flags["log-format"] = cli.FormatJSON
	}
	settings, _, err := config.ForServer(config.Sources{Doors: a.Doors, Flags: flags})
	return settings.Server, err
}

// demoEnd returns a context that ends when the demo is to end: also when its terminal is closed, since otherwise its
// directory would stay.
func demoEnd(ctx context.Context, a *cli.App, f demoFlags) (context.Context, func()) {
	meant := func() bool { return !slices.Contains(a.Ignored, os.Signal(syscall.SIGHUP)) }
	ctx, stop := cli.UntilSignalIf(ctx, meant, syscall.SIGHUP)
	if f.lasts.Value == 0 {
		return ctx, stop
	}
	ctx, cancel := context.WithTimeout(ctx, f.lasts.Value)
	return ctx, func() {
		cancel()
		stop()
	}
}

func runDemo(ctx context.Context, a *cli.App, serve serverFunc, f demoFlags) error {
	if f.listen == "" {
		f.listen = demoAddress()
	} else if err := onLoopback(f.listen); err != nil {
		return err
	}
	ctx, stop := demoEnd(ctx, a, f)
	defer stop()
	data, err := os.MkdirTemp("", "leasehold-demo-")
	if err != nil {
		return cli.Failure(leasehold.Unavailable, "no directory for the demo's data: %v", err)
	}
	defer os.RemoveAll(data)
	settings, err := demoSettings(a, f.listen, data)
	if err != nil {
		return cli.Usage("%v", err)
	}
	if err := playDemo(ctx, a, serve, settings, f.seed); err != nil {
		return cli.Failure(leasehold.Unavailable, "the demo stopped: %v", err)
	}
	return nil
}

// onLoopback refuses addresses that other machines can reach: a demo has no rules, and no flags to add some.
func onLoopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil // the settings say what is wrong with it
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return cli.Hint(cli.Usage("--listen is %q: a demo listens on loopback only, such as 127.0.0.1:0", listen),
		"a server for other machines: leasehold serve --help")
}

// playDemo runs the server, and the scenario on it, until ctx ends. The actors end first: they have leases to give
// back.
func playDemo(ctx context.Context, a *cli.App, serve serverFunc, settings config.Server, seed uint64) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var played, greeted error
	var playing sync.WaitGroup
	started := make(chan string, 1)
	playing.Go(func() {
		defer end()
		select {
		case url := <-started:
			played = demo.Play(ctx, demo.Config{Server: url, Seed: seed})
		case <-ctx.Done():
		}
	})
	err := serve(serving, node.Config{Server: settings, Version: a.Version, Log: a.Stderr}, func(s node.Serving) {
		url := settings.URL(s.Address)
		if greeted = greetDemo(a, url, consoleURL(url, settings)); greeted != nil {
			stop()
			return
		}
		started <- url
	})
	stop()
	playing.Wait()
	return errors.Join(err, greeted, played)
}

// demoAddresses is what demo prints as JSON.
type demoAddresses struct {
	Server  string `json:"server"`
	Console string `json:"console"`
}

func greetDemo(a *cli.App, url, console string) error {
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(demoAddresses{Server: url, Console: console})
	}
	a.Say("a demo runs on %s; ctrl-C ends it and removes its data", url)
	a.Say("the console is at %s", console)
	// The address is named even where it is the usual one: variables may name another.
	a.Say("try: %s list --server %s", calledAs(), url)
	return nil
}
