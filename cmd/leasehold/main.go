// Command leasehold is the server and the command line of Leasehold.
//
// Each subcommand has a file of its own and little in it: what is decided, the
// server decides. What a person types, reads and scripts against is decided
// here, and the stories in testdata hold it: data goes to standard output, talk
// to standard error, and every exit code has one meaning.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/child"
)

func main() { os.Exit(run()) }

// run is main for the tests as well, so that they start what users start.
func run() int {
	if len(os.Args) == 2 && os.Args[1] == guardName {
		child.Guard(os.Stdin)
		return 0
	}
	if len(os.Args) > 2 && os.Args[1] == gateName {
		return child.Begin(os.Args[2:])
	}
	cobra.EnableCommandSorting = false // the verbs are shown in the order of a lease's life
	return newApp().run(os.Args[1:])
}
