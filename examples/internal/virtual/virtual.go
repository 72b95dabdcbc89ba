// Package virtual opens clients for the tests of the examples.
package virtual

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	_ "github.com/leasehold/leasehold/store/memory" // where the leases are
)

// Open returns a client of the store in memory that all clients of a test share. In a bubble of
// testing/synctest its time is virtual.
func Open(t *testing.T, holder string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{
		Servers: []string{"memory://" + strings.ReplaceAll(t.Name(), "/", "-")}, Holder: holder, Clock: clock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type clock struct{}

func (clock) Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
