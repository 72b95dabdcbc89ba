// Cache keeps a price in memory and never shows an old one: setting it takes the lease of the copy.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/leasehold/leasehold/client"
	_ "github.com/leasehold/leasehold/store/memory"
	_ "github.com/leasehold/leasehold/store/redis"
)

type entry struct {
	*client.Hold
	price int
}

func (e *entry) get(ctx context.Context, c *client.Client, load func() int) (price int, err error) {
	if e.Hold == nil || !e.Valid() { // false before anybody else can get the lease
		e.Hold, err = c.Acquire(ctx, "prices/gold", client.TTL(time.Second), client.Renew(client.RenewNever()))
		e.price = load()
	}
	return e.price, err
}

func main() {
	ctx, e, price := context.Background(), new(entry), 41
	c, err := client.Dial(ctx, client.Config{}) // the store that LEASEHOLD_SERVER names
	for i := 0; i < 3 && err == nil; i++ {
		fmt.Println(e.get(ctx, c, func() int { return price }))
		err = c.Do(ctx, "prices/gold", func(context.Context, *client.Hold) error { price++; return nil })
	}
	if err != nil {
		log.Fatal(err)
	}
}
