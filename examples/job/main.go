// Job writes a report on one of many machines. Cron starts it on all of them at the same moment.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/leasehold/leasehold/client"
	_ "github.com/leasehold/leasehold/store/memory"
	_ "github.com/leasehold/leasehold/store/redis"
)

func main() {
	c, err := client.Dial(context.Background(), client.Config{}) // the store that LEASEHOLD_SERVER names
	if err == nil {
		err = errors.Join(nightly(context.Background(), c), c.Close())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func nightly(ctx context.Context, c *client.Client) error {
	err := c.Do(ctx, "reports/nightly", func(ctx context.Context, h *client.Hold) error {
		fmt.Println("writing the report, with token", h.Token())
		return ctx.Err() // ctx ends if the lease is lost
	}, client.Wait(0), client.TTL(30*time.Second), client.Reason("nightly report"))
	if errors.Is(err, client.ErrHeld) {
		fmt.Println("nothing to do:", err)
		return nil
	}
	return err
}
