// Agents is a team: orchestrators, of which one leads, and workers that do its tasks. Start as many of each as you
// like, on as many machines as you like: all they share is a Leasehold server.
//
//	agents orchestrate "fix the login" "write the docs"   # adds tasks, and waits until all of them are done
//	agents work claude -p                                 # does tasks: the command reads one and prints its answer
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/client"
)

// Where the team meets.
const (
	lead    = "team/lead"     // who has the lease on it is the orchestrator
	jobs    = "team/jobs/"    // the folder of the tasks
	answers = "team/answers/" // records with the answers that are too long for a task
)

func main() {
	ttl := flag.Duration("ttl", 15*time.Second, "time after which a member that is dead or hangs is replaced")
	flag.Parse()
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := client.Dial(ctx, client.Config{TTL: *ttl}) // the server that LEASEHOLD_SERVER names
	if err != nil {
		log.Fatal(err)
	}
	switch {
	case flag.NArg() >= 2 && flag.Arg(0) == "orchestrate":
		err = orchestrate(ctx, c, flag.Args()[1:])
	case flag.NArg() >= 2 && flag.Arg(0) == "work":
		err = work(ctx, c, flag.Args()[1:])
	default:
		err = errors.New("usage: agents [-ttl 15s] orchestrate PROMPT… | work COMMAND…")
	}
	// Close gives back what is held, so that the others need not wait for the TTL.
	if err = errors.Join(err, c.Close()); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}
