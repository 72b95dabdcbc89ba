package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/store/memory"
)

// Two clients of one store in the process.
func Example() {
	ctx := context.Background()
	s, err := memory.Open(memory.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ann, err := client.Open(ctx, s, client.Config{Holder: "ann", TTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	bob, err := client.Open(ctx, s.Again(), client.Config{Holder: "bob", TTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _, _ = ann.Close(), bob.Close() }()

	err = ann.Do(ctx, "reports/nightly", func(ctx context.Context, h *client.Hold) error {
		fmt.Println("ann has token", h.Token())
		_, err := bob.TryAcquire(ctx, "reports/nightly")
		var held *leasehold.Error
		if errors.As(err, &held) {
			fmt.Println("bob does not get it:", held.Lease.Holder, "has it")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// ann has token 1
	// bob does not get it: ann has it
	// <nil>
}
