package v1_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func ExampleCaller() {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	server := httptest.NewServer(door.MustHost(e, door.HostConfig{}, native.Kind))
	defer server.Close()

	caller, err := v1.NewCaller(v1.CallerConfig{Server: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer caller.CloseIdle()
	ctx := context.Background()

	// The deadline counts from before the request was sent.
	before := time.Now()
	lease, err := caller.Acquire(ctx, v1.AcquireRequest{Resource: "reports/nightly", Holder: "worker-7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	deadline := before.Add(time.Duration(*lease.RemainingMS) * time.Millisecond * 99 / 100)
	fmt.Println("token", lease.Token, "for", deadline.Sub(before))

	_, err = caller.Acquire(ctx, v1.AcquireRequest{Resource: "reports/nightly", Holder: "worker-8"})
	var held *leasehold.Error
	if errors.As(err, &held) && held.Code == leasehold.Held {
		fmt.Println("held by", held.Lease.Holder)
	}
	// Output:
	// token 1 for 29.7s
	// held by worker-7
}
