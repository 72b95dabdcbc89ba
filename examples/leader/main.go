// Leader lets one of many processes lead, and the others follow it. Ctrl-C ends it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/leasehold/leasehold/client"
	_ "github.com/leasehold/leasehold/store/memory"
	_ "github.com/leasehold/leasehold/store/redis"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := client.Dial(ctx, client.Config{TTL: 10 * time.Second}) // the store that LEASEHOLD_SERVER names
	if err == nil {
		err = errors.Join(campaign(ctx, c, fmt.Sprint("process ", os.Getpid())), c.Close())
	}
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// campaign leads whenever it is elected, until ctx ends.
func campaign(ctx context.Context, c *client.Client, address string) error {
	return c.Elect(ctx, "scheduler", []byte(address), func(ctx context.Context, h *client.Hold) error {
		seen, err := c.Leader(ctx, "scheduler") // as everybody sees it
		fmt.Printf("%s leads, with token %d\n", seen.Value, seen.Token)
		<-ctx.Done() // lead until then: it ends if the lead is lost
		return err
	})
}
