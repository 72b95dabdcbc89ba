package native

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/server"
)

// respWatches are the watches of one connection, by their tags.
type respWatches struct {
	mu  sync.Mutex // guards what follows
	all map[string]*respWatch

	turn sync.Mutex // one of them at a time looks how much the client has to read, and adds to it
}

// maxWatches is how many watches a connection can have.
const maxWatches = 64

func (r *respWatches) add(w *respWatch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.all[w.tag] != nil:
		return invalid("tag %s is used by another watch of this connection: choose another TAG", brief(w.tag))
	case len(r.all) >= maxWatches:
		return &leasehold.Error{Code: leasehold.Limited,
			Message: "this connection has 64 watches, which is the most: end one with LH.UNWATCH, or connect again"}
	case r.all == nil:
		r.all = map[string]*respWatch{}
	}
	r.all[w.tag] = w
	return nil
}

// remove forgets a watch, and reports whether it was the last one.
func (r *respWatches) remove(w *respWatch) (last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[w.tag] == w {
		delete(r.all, w.tag)
	}
	return len(r.all) == 0
}

// none reports whether there is no watch: all have ended, by themselves or not.
func (r *respWatches) none() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all) == 0
}

func (r *respWatches) find(tag string) *respWatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[tag]
}

// endAll ends all watches, and returns when they have ended.
func (r *respWatches) endAll() {
	r.mu.Lock()
	var all []*respWatch
	for _, w := range r.all {
		all = append(all, w)
	}
	r.mu.Unlock()
	for _, w := range all {
		w.end()
	}
}

// A respWatch is one watch over RESP. Like one over HTTP it reads the shared history at its own pace: what the client
// has not taken yet is bounded, and one that takes too long over it is cut off, with the place to go on from.
type respWatch struct {
	*respCall
	tag     string
	version int
	watcher *engine.Watcher
	values  encode.Values
	told    v1.Position
	leave   func()
	cancel  context.CancelFunc
	ended   chan struct{}
}

// watchRESP is LH.WATCH. Without RESP3, which tells pushes from answers, the connection is for watches alone from
// then on.
func watchRESP(o *respOperation, sc *server.Call, w *resp.Writer) {
	c := callOf(sc)
	err := c.open(sc.Conn.State.(*respConn), o, sc.Args, w)
	if err == nil {
		err = c.beginWatch()
	}
	c.finish(err)
}

// beginWatch answers with where the watch begins. Its events are pushed from then on, between other answers.
func (c *respCall) beginWatch() error {
	s := &respWatch{respCall: c.own(), tag: "watch", version: c.out.Version, ended: make(chan struct{})}
	if tag := c.words.Word("tag"); tag != nil {
		s.tag = string(tag)
	}
	filter, since, bad := c.readWatch(&s.values)
	if err := firstError(checkName("tag", s.tag), bad); err != nil {
		return err
	}
	conn := c.respWire.conn
	if err := conn.watches.add(s); err != nil {
		return err
	}
	if err := s.open(filter, since); err != nil {
		conn.watches.remove(s)
		return err
	}
	if s.version != 3 {
		conn.Allow(conn.whileWatching)
	}
	at := shown(s.watcher.At())
	s.told = at
	if err := c.marshal(struct {
		Tag string `json:"tag"`
		v1.Hello
		Revision uint64 `json:"revision"`
	}{s.tag, c.hello(at), uint64(s.watcher.Began())}); err != nil {
		return err
	}
	go s.run()
	return nil
}

// open begins to watch. The error of a place that is no longer known says where to go on.
func (s *respWatch) open(filter engine.Filter, since *engine.Position) (err error) {
	left, err := s.stayWatching()
	if err != nil {
		return err
	}
	s.ctx, s.cancel = context.WithCancel(s.ctx)
	s.leave = func() {
		s.cancel()
		left()
	}
	s.watcher, err = engine.Watch(s.ctx, s.door.backend.Engine(), filter, since)
	if err == nil {
		return nil
	}
	s.leave()
	var gone *engine.GoneError
	if errors.As(err, &gone) {
		return &leasehold.Error{Code: leasehold.Lost, Message: "the events after " + shown(gone.Since).String() +
			" are gone: list what there is, and watch with SINCE " + shown(gone.Oldest).String()}
	}
	return err
}

// whileWatching lets a connection of RESP2 that watches do nothing else.
func (r *respConn) whileWatching(command string) error {
	switch {
	case command == "LH.UNWATCH", command == "LH.WATCH", command == "PING", r.Version() == 3, r.watches.none():
		return nil
	}
	return &resp.Failure{Code: "ERR", Text: "Can't execute '" + command + "': only LH.WATCH, LH.UNWATCH, PING, QUIT " +
		"and RESET are allowed on a connection that watches with RESP2; send HELLO 3 first to do more"}
}

// unwatch is LH.UNWATCH tag.
func unwatch(sc *server.Call, w *resp.Writer) {
	conn := sc.Conn.State.(*respConn)
	s := conn.watches.find(string(sc.Args[0]))
	if s == nil {
		conn.fail(w, &leasehold.Error{Code: leasehold.NotFound,
			Message: "this connection has no watch with the tag " + brief(string(sc.Args[0]))})
		return
	}
	s.end()
	if conn.watches.remove(s) {
		conn.Allow(nil)
	}
	conn.Settle() // with RESP2, an event after this answer would be taken for the next one
	w.OK()
}

func (s *respWatch) end() {
	s.cancel()
	<-s.ended
}

// run pushes what happens until the watch is ended.
func (s *respWatch) run() {
	defer close(s.ended)
	defer s.leave()
	defer s.respWire.conn.watches.remove(s)
	alive, pause := time.NewTicker(keepAlive), time.NewTimer(0)
	defer alive.Stop()
	defer pause.Stop()
	var slow time.Time // since when the client has too much to read
	for {
		more, err := s.take(&slow)
		if err != nil {
			s.farewell(err)
			return
		}
		if !s.rest(more, alive, pause) {
			return
		}
	}
}

// take pushes the next events, unless the client has too much to read already.
func (s *respWatch) take(slow *time.Time) (more <-chan struct{}, err error) {
	conn := s.respWire.conn
	conn.watches.turn.Lock()
	defer conn.watches.turn.Unlock()
	switch queued := conn.Queued(); {
	case queued <= maxFlush/2:
		*slow = time.Time{}
		return s.collect()
	case slow.IsZero():
		*slow = time.Now()
	case time.Since(*slow) > slowTime:
		return nil, errSlow
	}
	return nil, nil
}

// errSlow is why a watch ends whose client does not read.
var errSlow = errors.New("the client does not read")

// rest waits until it is time to look again, and reports whether it is worth it.
func (s *respWatch) rest(more <-chan struct{}, alive *time.Ticker, pause *time.Timer) bool {
	select {
	case <-more:
	case <-s.door.pause(s.watcher, more, pause):
	case <-alive.C:
		s.stillThere()
	case <-s.ctx.Done():
		s.farewell(s.ctx.Err())
		return false
	}
	return true
}

// collect pushes the next events, up to a limit. If there were none, more tells when there are.
func (s *respWatch) collect() (more <-chan struct{}, err error) {
	size := 0
	more, err = s.watcher.Each(func(e *leasehold.Event) bool {
		s.told = v1.Position{Revision: uint64(e.Revision), N: e.N}
		s.push("lh.watch", func(b *encode.Buffer) { b.Event(e, s.values) })
		size += eventSize(e, s.values)
		return size <= maxFlush/2
	})
	return more, err
}

// eventSize is about how many bytes an event takes.
func eventSize(e *leasehold.Event, with encode.Values) int {
	size := 400
	if with.Now && e.Record != nil {
		size += len(e.Record.Value)
	}
	if with.Before && e.Previous != nil {
		size += len(e.Previous.Value)
	}
	return size
}

// push sends one message of the watch.
func (s *respWatch) push(kind string, fill func(*encode.Buffer)) {
	_ = s.respWire.conn.Push(func(w *resp.Writer) { // who is gone does not want it
		w.Push(3)
		w.String(kind)
		w.String(s.tag)
		b := encode.New(w.Bytes(), form(w.Version))
		fill(&b)
		w.Reset(b.Bytes)
	})
}

// stillThere tells a silent client that the watch goes on, and the place that it has reached: else a quiet prefix in
// a busy namespace would one day be told that its place is gone.
func (s *respWatch) stillThere() {
	s.told = shown(s.watcher.At())
	s.push("lh.here", s.position("position", s.told))
}

func (s *respWatch) position(key string, at v1.Position) func(*encode.Buffer) {
	return func(b *encode.Buffer) {
		b.Open()
		b.Text(key, at.String())
		b.Close()
	}
}

// farewell says why a watch ends, unless the client wants that.
func (s *respWatch) farewell(err error) {
	var gone *engine.GoneError
	ended := s.door.backend.Ended(s.ctx, s.proof, err)
	switch {
	case err == errSlow:
		s.door.backend.Metrics().Cut.Inc()
		s.push("lh.cut", s.position("resume", shown(s.watcher.At())))
		return
	case errors.As(err, &gone):
		s.push("lh.gone", func(b *encode.Buffer) {
			_ = b.Marshal(v1.Gone{Since: shown(gone.Since), Oldest: shown(gone.Oldest),
				Revision: uint64(gone.Revision)})
		})
		return
	case s.door.backend.Stopping().Err() != nil:
		err = engine.Unavailable("the server is stopping: watch again with the last position, at another server")
	case ended != nil:
		err = ended
	case s.ctx.Err() != nil:
		return // it was ended by the client, or with its connection
	}
	conn := s.respWire.conn
	_ = conn.Push(func(w *resp.Writer) {
		w.Push(3)
		w.String("lh.end")
		w.String(s.tag)
		conn.fail(w, err)
	})
}
