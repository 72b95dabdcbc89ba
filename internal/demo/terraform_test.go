package demo

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A door grants everything.
type door func(method string)

func (d door) RoundTrip(r *http.Request) (*http.Response, error) {
	d(r.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// A demo that ends while a state is locked writes and unlocks it, and does not rest after that.
func TestAnApplyEndsWithTheDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var methods []string
		api, err := v1.NewCaller(v1.CallerConfig{Client: &http.Client{Transport: door(func(method string) {
			methods = append(methods, method)
			if method == "LOCK" {
				time.AfterFunc(time.Second, cancel)
			}
		})}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		apply(ctx, &actor{Rand: rand.New(rand.NewPCG(1, 1)), api: api, began: began})
		if took := time.Since(began); took != time.Second {
			t.Errorf("it ended %v after it was told to", took-time.Second)
		}
		if want := []string{"LOCK", "GET", "POST", "UNLOCK"}; !slices.Equal(methods, want) {
			t.Errorf("it sent %v, want %v", methods, want)
		}
	})
}
