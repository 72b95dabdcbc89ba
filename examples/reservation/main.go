// Reservation books the blue room for four hours. Nothing renews it, and no program need run meanwhile.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/user"
	"time"

	"github.com/leasehold/leasehold/client"
	_ "github.com/leasehold/leasehold/store/memory"
	_ "github.com/leasehold/leasehold/store/redis"
)

func main() {
	who, err := user.Current()
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Dial(context.Background(), client.Config{}) // the store that LEASEHOLD_SERVER names
	if err == nil {
		err = errors.Join(book(context.Background(), c, who.Username), c.Close()) // Close leaves it as it is
	}
	if err != nil {
		log.Fatal(err) // if the room is taken: by whom, and for how long
	}
}

func book(ctx context.Context, c *client.Client, who string) error {
	h, err := c.TryAcquire(ctx, "rooms/blue", client.TTL(4*time.Hour), client.Renew(client.RenewNever()),
		client.Holder(who), client.Reason("interviews"))
	if err == nil {
		fmt.Println("the room is yours until", h.Expires().Format(time.Kitchen))
	}
	return err
}
