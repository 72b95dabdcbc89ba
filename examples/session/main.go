// Session logs somebody in once at a time. Each line of input is activity; 30 minutes without any end it.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/leasehold/leasehold/client"
	_ "github.com/leasehold/leasehold/store/memory"
	_ "github.com/leasehold/leasehold/store/redis"
)

func main() {
	c, err := client.Dial(context.Background(), client.Config{}) // the store that LEASEHOLD_SERVER names
	if err == nil {
		err = errors.Join(login(context.Background(), c, "ann", os.Stdin), c.Close())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func login(ctx context.Context, c *client.Client, user string, input io.Reader) error {
	h, err := c.TryAcquire(ctx, "logins/"+user, client.TTL(30*time.Minute), client.Renew(client.RenewOnActivity()))
	if err != nil {
		return err // it says where the user is logged in
	}
	for lines := bufio.NewScanner(input); h.Valid() && lines.Scan() && h.Valid(); h.Touch() {
		fmt.Printf("%s: %s\n", user, lines.Text())
	}
	return errors.Join(h.Err(), h.Release(ctx))
}
