package listen

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// A Drain is how a port stops without cutting off anybody who asked in time.
//
// Clients keep connections open and may send the next request on one of them at any moment.
// Closing such a connection when the server is told to stop would cut off a request that may be
// on its way, and the client could not know whether it was carried out. So the port goes on for
// a while and answers new requests with 503 and "Connection: close"; then it finishes what is
// under way.
type Drain struct {
	Linger  time.Duration // how long new requests are still answered
	Timeout time.Duration // how long what is under way may take after that

	// Begin is called once, at the beginning: from then on the port refuses new requests.
	Begin func()
	// Open returns how many connections there are. When there are none, nobody is waited for.
	Open func() int
	// Finish waits for what is under way beside HTTP, until ctx ends. Nil: nothing is.
	Finish func(ctx context.Context) error
}

// Until serves until ctx ends, and then drains. serve calls one of the server's methods that
// return when it shuts down. The error is nil if everything was finished.
func (d Drain) Until(ctx context.Context, server *http.Server, serve func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- serve() }()
	select {
	case err := <-ended:
		d.Begin()
		return errors.Join(err, d.shutdown(server))
	case <-ctx.Done():
	}
	d.Begin()
	// Before Shutdown, which closes idle connections at once: a request may be on its way on
	// one.
	d.linger()
	err := d.shutdown(server)
	<-ended
	return err
}

// look is how often a lingering port looks whether anybody is left.
const look = 20 * time.Millisecond

func (d Drain) linger() {
	for end := time.Now().Add(d.Linger); time.Now().Before(end) && d.Open() > 0; {
		time.Sleep(min(look, time.Until(end)))
	}
}

func (d Drain) shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		_ = server.Close()
	}
	// With the same deadline: HTTP and the other protocols drain at the same time.
	if d.Finish != nil {
		err = cmp.Or(err, d.Finish(ctx))
	}
	return err
}
