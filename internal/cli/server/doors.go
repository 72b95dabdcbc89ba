package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/api/v1/doors"
	"github.com/leasehold/leasehold/internal/cli"
)

// Doors returns the command doors.
func Doors(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doors",
		Short: "Show which protocols a server speaks, where, and who is connected",
		Long: `Doors shows which protocols the server speaks, at which address, and how many
connections each has, by the names that clients give themselves. Clients that give no name
are counted, but not listed.

It shows the server that answers: each server of a cluster has its own clients.`,
		Example: `  leasehold doors
  leasehold doors -o name
  leasehold doors -o json | jq -r '.[] | select(.on).name'`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		list, err := doors.List(ctx, c.Caller)
		if err != nil {
			return err
		}
		return printDoors(a, list)
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// printEach prints a line for each item.
func printEach[T any](a *cli.App, items []T, line func(T) string) error {
	for _, item := range items {
		if err := a.PrintLine(line(item)); err != nil {
			return err
		}
	}
	return nil
}

func printDoors(a *cli.App, list doors.Doors) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(list.Items)
	case cli.FormatName:
		return printEach(a, list.Items, func(d doors.DoorStatus) string { return d.Name })
	}
	columns := []cli.Column{{Name: "DOOR"}, {Name: "ADDRESS"}, {Name: "CONNECTIONS", Right: true}, {Name: "CLIENTS"}}
	var rows [][]string
	for _, d := range list.Items {
		address := "off"
		if d.On {
			address = strings.Join(d.Addresses, ", ")
		}
		rows = append(rows, []string{d.Name, address, strconv.Itoa(d.Connections), clients(d.Clients)})
	}
	return a.PrintTable(columns, rows)
}

// clients lists clients by their names, as far as they have one.
func clients(all []doors.DoorClient) string {
	var names []string
	for _, c := range all {
		if c.Client != "" {
			names = append(names, fmt.Sprintf("%s (%d)", cli.Printable(c.Client), c.Connections))
		}
	}
	return strings.Join(names, ", ")
}

// Connect returns the command connect.
func Connect(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connect [TOOL]",
		Short: "Show what to paste to reach a server with a tool",
		Long: `Connect shows the lines to paste to reach the server with a tool, with the address and
the namespace that this command itself uses. Without a tool it lists the tools it knows.

Clients of etcd, Kubernetes and Consul cannot choose a namespace of Leasehold: theirs are
set for the server, with --etcd-namespace, --kubernetes-namespace and --consul-namespace.`,
		Example: `  leasehold connect
  leasehold connect terraform > backend.tf
  leasehold connect curl --namespace team-a`,
		Args: cli.Takes(0, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		tools, err := doors.ListTools(ctx, c.Caller, c.Client.Servers[0])
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return printTools(a, tools)
		}
		if err := printTool(a, tools, args[0]); err != nil {
			return err
		}
		sayCertificates(a, c)
		return nil
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func printTools(a *cli.App, tools doors.Tools) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(tools.Items)
	case cli.FormatName:
		return printEach(a, tools.Items, func(t doors.Tool) string { return t.ID })
	}
	columns := []cli.Column{{Name: "TOOL"}, {Name: "DOOR"}, {Name: "WHAT"}}
	var rows [][]string
	for _, t := range tools.Items {
		door := t.Door
		if !t.On {
			door += " (off)"
		}
		rows = append(rows, []string{t.ID, door, t.What})
	}
	return a.PrintTable(columns, rows)
}

func printText(a *cli.App, text string) error {
	for line := range strings.Lines(text) {
		if err := a.PrintLine(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

func printTool(a *cli.App, tools doors.Tools, id string) error {
	var known []string
	for _, t := range tools.Items {
		if t.ID != id {
			known = append(known, t.ID)
			continue
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(t)
		}
		if !t.On {
			a.Say("the %s door of this server is off: leasehold serve --help shows how to open it", t.Door)
		}
		return printText(a, t.Text)
	}
	return cli.Usage("unknown tool %q; known tools: %s", id, strings.Join(known, ", "))
}

// sayCertificates says which certificates a tool needs as well: only this command knows its files, and each tool names
// them in its own way.
func sayCertificates(a *cli.App, c *cli.Conn) {
	if file := c.Client.TLS.CA; file != "" {
		a.Say("the tool has to trust the authority in %s, as this command does", file)
	}
	if file := c.Client.TLS.Cert; file != "" {
		a.Say("it may have to show a certificate, as this command does with %s", file)
	}
}
