package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/leasehold/leasehold"
)

// Questions and large files each have a connection of their own. The end that works on one
// sends pings, so that the other end knows to go on waiting.

// quietFor is how long the two ends of such a connection wait for a sign of each other.
const quietFor = 10 * time.Second

// maxQuestion is how long a question may be, and what is said of a large file before it comes. They name a server or a
// value. Servers that belong to no cluster may ask, too, on as many connections as there are.
const maxQuestion = 64 << 10

// Ask asks a server of the mesh, and returns its answer. The error is a *leasehold.Error: the
// other server's own; Unavailable if it did not get the question; Undecided if it may have. It
// wraps a *Refusal if there was one.
func (m *Mesh) Ask(ctx context.Context, to uint64, kind byte, body []byte) ([]byte, error) {
	p, ok := m.peer(to)
	if !ok {
		return nil, notAsked(fmt.Errorf("no server with the id %d is known here", to))
	}
	return m.ask(ctx, to, p, kind, body)
}

// AskAt asks the server at an address.
func (m *Mesh) AskAt(ctx context.Context, address string, kind byte, body []byte) ([]byte, error) {
	return m.ask(ctx, 0, Peer{Address: address}, kind, body)
}

func (m *Mesh) ask(ctx context.Context, to uint64, p Peer, kind byte, body []byte) ([]byte, error) {
	if len(body) > maxQuestion {
		return nil, notAsked(fmt.Errorf("a question of %d bytes is too long", len(body)))
	}
	conn, err := m.connect(ctx, to, p, forAsk)
	if err != nil {
		return nil, notAsked(unavailable(p, err))
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetWriteDeadline(time.Now().Add(quietFor))
	if err := writeFrame(conn, kind, body); err != nil {
		return nil, lost(p, err)
	}
	answer, err := readAnswer(conn)
	var theirs *leasehold.Error
	if err == nil || errors.As(err, &theirs) {
		return answer, err
	}
	return nil, lost(p, err)
}

// A failed question keeps why it failed beside the code.
type failed struct {
	known *leasehold.Error
	cause error
}

func (f failed) Error() string   { return f.known.Message }
func (f failed) Unwrap() []error { return []error{f.known, f.cause} }

func notAsked(err error) error {
	return failed{&leasehold.Error{Code: leasehold.Unavailable, Message: err.Error()}, err}
}

func lost(p Peer, err error) error {
	return failed{&leasehold.Error{Code: leasehold.Undecided,
		Message: fmt.Sprintf("server %s did not answer: %v", p.Name, err)}, err}
}

// answer takes a question and answers it.
func (m *Mesh) answer(conn net.Conn, from Identity) {
	_ = conn.SetReadDeadline(time.Now().Add(quietFor))
	kind, body, err := readFrame(conn, maxQuestion)
	if err != nil || kind >= kindHello {
		return
	}
	var answer []byte
	if !m.work(conn, func(ctx context.Context) { answer, err = m.Handler.Ask(ctx, from, kind, body) }) {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(quietFor))
	if err != nil {
		_ = writeFrame(conn, kindError, encodeError(err))
		return
	}
	_ = writeFrame(conn, kindAnswer, answer)
}

// work calls do while the other end is told that it is under way, and reports whether the other
// end still wants to know.
func (m *Mesh) work(conn net.Conn, do func(context.Context)) bool {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	done := make(chan struct{})
	m.workers.Go(func() {
		defer close(done)
		do(ctx)
	})
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return true
		case <-ticker.C:
			_ = conn.SetWriteDeadline(time.Now().Add(quietFor))
			if err := writeFrame(conn, kindPing, nil); err != nil {
				cancel()
				<-done
				return false
			}
		}
	}
}

// readAnswer waits for an answer, for as long as the other end gives signs of life.
func readAnswer(conn net.Conn) ([]byte, error) {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(quietFor))
		kind, body, err := readFrame(conn, MaxFrame)
		if err != nil {
			return nil, inWords(err)
		}
		switch kind {
		case kindPing:
		case kindAnswer:
			return body, nil
		case kindError:
			return nil, decodeError(body)
		default:
			return nil, errKind
		}
	}
}

func encodeError(err error) []byte {
	code := leasehold.Unavailable
	var known *leasehold.Error
	if errors.As(err, &known) {
		code = known.Code
	}
	message := err.Error()
	if len(message) > MaxFrame/2 {
		message = message[:MaxFrame/2]
	}
	return append([]byte{byte(code)}, message...)
}

func decodeError(b []byte) error {
	if len(b) == 0 || leasehold.Code(b[0]) < leasehold.Held || leasehold.Code(b[0]) > leasehold.Refused {
		return errDamaged
	}
	return &leasehold.Error{Code: leasehold.Code(b[0]), Message: string(b[1:])}
}
