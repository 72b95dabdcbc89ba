package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Watch measures how fast events reach many watchers. Unlike in the other operations, events come
// at a rate of their own, however slow the server or its readers are, and each is delivered to all.
// It is not one of Operations.
const Watch = "watch"

// Limits of it.
const (
	MaxWatchers = 8000
	MaxRate     = 100000
)

// An audience is many watchers of one resource, and what they are shown.
type audience struct {
	config   Config
	clients  []*v1.Caller // who make the events
	resource string
	warmUp   int // how many events are not counted
	events   int // how many events there will be
	watchers []*watcher
	sent     atomic.Int64

	mu     sync.Mutex // guards what follows
	began  time.Time  // when event 0 was due; zero: not yet
	errors uint64
	first  error
}

// A watcher counts what one connection brings. It does not parse JSON: with a thousand watchers on
// one machine, that would measure the parsing.
type watcher struct {
	all   *audience
	body  io.ReadCloser
	lines *bufio.Reader
	last  v1.Position
	began time.Time // when event 0 was due
	read  atomic.Int64
	ended atomic.Bool

	mu     sync.Mutex // guards what follows
	times  Histogram
	newest time.Time // when it read the last one that counts
}

// checkWatch reports what is wrong with a config for watch.
func (c Config) checkWatch() error {
	switch {
	case c.Watchers < 1 || c.Watchers > MaxWatchers:
		return refuse("there can be 1 to %d watchers, not %d", MaxWatchers, c.Watchers)
	case c.EventRate < 1 || c.EventRate > MaxRate:
		return refuse("there can be 1 to %d events a second, not %d", MaxRate, c.EventRate)
	}
	return nil
}

// watch has watchers watch one resource while events happen to it at a fixed rate. It measures
// how long each event took from the moment it was due to each watcher. An event that did not
// arrive, or not in order, is an error.
func (r *Runner) watch(ctx context.Context) Result {
	a := &audience{config: r.config, clients: r.clients, resource: r.prefix + Watch}
	a.warmUp = int(r.config.WarmUp.Seconds() * float64(r.config.EventRate))
	a.events = a.warmUp + max(1, int(r.config.Duration.Seconds()*float64(r.config.EventRate)))
	stopReports := r.config.reportProgress(a.progress)
	defer stopReports()
	lease := v1.AcquireRequest{
		Resource: a.resource, Holder: r.config.Holder, ID: a.resource,
		TTL: v1.TTL{Duration: v1.Duration(ttl + r.config.WarmUp + r.config.Duration)},
	}
	result := Result{Operation: Watch, Leases: 1}
	if _, err := r.clients[0].Acquire(ctx, lease); err != nil {
		a.fail(err)
	} else {
		a.run(ctx)
		result.Left = a.release(lease.ID)
	}
	a.finish(&result)
	return result
}

// run connects the watchers and makes the events. It continues after ctx has ended until what was
// sent has arrived: an event under way is not lost.
func (a *audience) run(ctx context.Context) {
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	var readers sync.WaitGroup
	if a.open(ctx, reading) {
		a.begin()
		for _, w := range a.watchers {
			readers.Go(w.follow)
		}
		a.publish(ctx)
		a.awaitReaders()
	}
	stop()
	readers.Wait()
	for _, w := range a.watchers {
		w.body.Close()
	}
}

func (a *audience) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = time.Now()
	for _, w := range a.watchers {
		w.began = a.began
	}
}

// release releases the lease, and returns how many it could not release.
func (a *audience) release(id string) int {
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	if err := a.clients[0].Release(ctx, v1.ReleaseRequest{ID: id}); err != nil && !isNone(err) {
		return 1
	}
	return 0
}

func (a *audience) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errors++
	if a.first == nil {
		a.first = err
	}
}

// atOnce is how many connections are opened at a time: a backlog of the listener
// holds that many on any system.
const atOnce = 64

// bufferSize holds the batch of a few milliseconds.
const bufferSize = 32 << 10

// open connects all watchers, and reports whether it succeeded. They must all be there before the
// first event, or it would count as lost for those who come later.
func (a *audience) open(ctx, reading context.Context) bool {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		DisableCompression: true, ReadBufferSize: bufferSize,
		TLSClientConfig: a.config.TLS,
	}}
	query := url.Values{"namespace": {a.config.Namespace}, "resource": {a.resource}}
	path := "/v1/watch?" + query.Encode()
	var next atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for range min(atOnce, a.config.Watchers) {
		all.Go(func() {
			for n := next.Add(1); n <= int64(a.config.Watchers) && ctx.Err() == nil && !failed.Load(); n = next.Add(1) {
				server := a.config.serversFor(int(n))[0]
				if err := a.connect(reading, client, strings.TrimRight(server, "/")+path); err != nil {
					failed.Store(true)
					a.fail(err)
				}
			}
		})
	}
	all.Wait()
	return !failed.Load() && ctx.Err() == nil
}

// connect opens one watch and reads its first message, after which nothing is
// missed.
func (a *audience) connect(ctx context.Context, client *http.Client, address string) error {
	r, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("a watch could not begin: %w", err)
	}
	w := &watcher{all: a, body: response.Body, lines: bufio.NewReaderSize(response.Body, bufferSize)}
	a.mu.Lock()
	a.watchers = append(a.watchers, w)
	a.mu.Unlock()
	if response.StatusCode != http.StatusOK {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "a watch was answered with " + response.Status}
	}
	for {
		line, err := w.lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("a watch ended before it began: %w", err)
		}
		if len(line) == 1 {
			return nil
		}
	}
}

// publish makes the events, each when it is due. As many can be under way as
// there are clients; if that is too few they fall behind, which counts as delay.
func (a *audience) publish(ctx context.Context) {
	due := make(chan int)
	var publishers sync.WaitGroup
	for _, c := range a.clients {
		publishers.Go(func() {
			for n := range due {
				r := v1.AskRequest{Resource: a.resource, Message: strconv.Itoa(n)}
				if _, err := c.Ask(context.WithoutCancel(ctx), r); err != nil {
					a.fail(err)
					continue
				}
				a.sent.Add(1)
			}
		})
	}
	for n := range a.events {
		if !wait(ctx.Done(), time.Until(a.began.Add(a.due(n)))) {
			break
		}
		due <- n
	}
	close(due)
	publishers.Wait()
}

// due returns when an event has to happen, counted from the first one. Delays are measured from
// there and not from when it was sent: a server that is too slow must not look better because it
// slows the sender down.
func (a *audience) due(n int) time.Duration {
	return time.Duration(n) * time.Second / time.Duration(a.config.EventRate)
}

// awaitReaders returns when everything has been read that can be, or nobody read
// anything for a while.
func (a *audience) awaitReaders() {
	const patience = 10 * time.Second
	last, since := a.missing(), time.Now()
	for last > 0 && time.Since(since) < patience {
		wait(nil, 10*time.Millisecond)
		if now := a.missing(); now < last {
			last, since = now, time.Now()
		}
	}
}

// missing returns how many events are still to be read, by those who still read.
func (a *audience) missing() (n int64) {
	for _, w := range a.watchers {
		if !w.ended.Load() {
			n += max(0, a.sent.Load()-w.read.Load())
		}
	}
	return n
}

// follow reads until the connection ends.
func (w *watcher) follow() {
	defer w.ended.Store(true)
	for {
		line, err := w.lines.ReadSlice('\n')
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				w.all.fail(fmt.Errorf("a watch ended: %w", err))
			}
			return
		}
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			err = w.advance(string(bytes.TrimSpace(id)))
		} else if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			err = w.count(data)
		}
		if err != nil {
			w.all.fail(err)
		}
	}
}

// advance notes the position of what follows, and reports an error if it is not after the last one.
func (w *watcher) advance(id string) error {
	at, err := v1.ParsePosition(id)
	last := w.last
	w.last = at
	if err == nil && (at.Revision < last.Revision || at.Revision == last.Revision && at.N <= last.N) {
		err = &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf("a watch showed %v after %v", at, last)}
	}
	return err
}

// count finds out which event it is by its message, which is the event's number.
func (w *watcher) count(data []byte) error {
	now := time.Now()
	_, text, _ := bytes.Cut(data, []byte(`"reason":"`))
	text, _, _ = bytes.Cut(text, []byte(`"`))
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return &leasehold.Error{Code: leasehold.Refused,
			Message: fmt.Sprintf("a watch showed an event that the bench did not make: %.200s", data)}
	}
	w.read.Add(1)
	if n < w.all.warmUp {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times.Add(now.Sub(w.began.Add(w.all.due(n))))
	w.newest = now
	return nil
}

// figures are those of all watchers so far, with how long has been measured.
func (a *audience) figures() (Figures, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all Histogram
	var newest time.Time
	for _, w := range a.watchers {
		w.mu.Lock()
		all.Merge(&w.times)
		if w.newest.After(newest) {
			newest = w.newest
		}
		w.mu.Unlock()
	}
	measured := max(0, newest.Sub(a.began.Add(a.due(a.warmUp))))
	f := figuresOf(&all, measured)
	f.Errors = a.errors
	return f, measured
}

func (a *audience) progress() Progress {
	figures, measured := a.figures()
	p := Progress{Operation: Watch, Phase: WarmingUp, Elapsed: measured, Figures: figures}
	if figures.Count > 0 {
		p.Phase = Measuring
	}
	return p
}

// finish counts what did not arrive.
func (a *audience) finish(result *Result) {
	for _, w := range a.watchers {
		result.Lost += max(0, a.sent.Load()-w.read.Load())
	}
	if result.Lost > 0 {
		a.fail(&leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf("%d events did not arrive", result.Lost)})
	}
	result.Figures, result.Measured = a.figures()
	result.First = a.first
}
