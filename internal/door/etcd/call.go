package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/grpcconn"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// A call is one call on its way through the door.
type call struct {
	*rpc
	door        *Door
	engine      *door.Witness
	ctx         context.Context // with who asks
	proof       *credential.Proof
	address     string
	stream      bool
	needsLeader bool // the client wants to know at once when there is no leader
	began       time.Time

	// Of what it was about, for the journal.
	resource string
	id       string

	answer door.Answer
	shown  int // bytes of keys and values in the parts of the answer that are read

	waited bool // for a lock or an election
	held   bool // for as long as the client waited
}

type callKey struct{}

// callOf returns the call that a context belongs to.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// unary answers one call that has one answer.
func (d *Door) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	c, err := d.enter(ctx, info.FullMethod, false)
	var answer any
	if err == nil {
		err = c.survive(func() (err error) {
			answer, err = handler(c.ctx, request)
			return err
		})
	}
	return answer, c.end(err)
}

// streaming answers one call that is a stream.
func (d *Door) streaming(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	c, err := d.enter(stream.Context(), info.FullMethod, true)
	if err == nil {
		leave := d.watchLeader(c)
		err = c.survive(func() error { return handler(server, &called{stream, c.ctx}) })
		leave()
	}
	return c.end(err)
}

// survive carries out a call, and ends that alone when it panics, as net/http does, and not the server.
func (c *call) survive(do func() error) (err error) {
	defer func() {
		if said := recover(); said != nil {
			c.door.backend.Log().Error("serving a call panicked", "method", c.method, "from", c.address, "panic", said,
				"stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "the server made a mistake: its log has the details")
		}
	}()
	return do()
}

// called is a stream whose context knows the call.
type called struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the context of the stream.
func (s *called) Context() context.Context { return s.ctx }

// RecvMsg waits for the next message.
func (s *called) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		took(s.ctx)
	}
	return err
}

// grown says how many bytes of keys and values there are by now in the part of an answer that is being read.
func (c *call) grown(bytes int) error {
	if c == nil {
		return nil // the door itself reads
	}
	err := c.answer.Grow(c.ctx, c.door.backend, c.shown+bytes, "of keys and values", "ask with a limit")
	if err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return nil
}

// shows says how many bytes of keys and values a part of an answer has that grown had to guess.
func (c *call) shows(bytes int) {
	if c != nil {
		c.shown += bytes
		c.answer.Shrink(c.shown)
	}
}

// enter finds out what is asked, and by whom.
func (d *Door) enter(ctx context.Context, method string, stream bool) (*call, error) {
	c := &call{rpc: d.calls[method], door: d, engine: d.backend.Witness(), ctx: ctx, stream: stream, began: time.Now()}
	c.needsLeader = sent(ctx, "hasleader") == "true"
	if own := grpcconn.FromContext(ctx); own != nil {
		c.address = own.From()
	} else if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		c.address = p.Addr.String()
	}
	switch {
	case c.rpc == nil:
		c.rpc = &rpc{operation{name: "unknown", method: method}, nil}
		return c, status.Errorf(codes.Unimplemented, "unknown method %s", door.Brief(method))
	case d.backend.Stopping().Err() != nil:
		return c, status.Error(codes.Unavailable, door.StoppingMessage)
	case d.backend.Starting():
		return c, status.Error(codes.Unavailable, door.StartingMessage)
	}
	if conn := connOf(ctx); conn != nil {
		conn.met.Do(func() { door.Meet(conn.Conn, doorName, sent(ctx, "user-agent")) })
		if conn.refused != nil {
			return c, status.Error(codes.Unavailable, conn.refused.Error())
		}
	}
	if err := c.login(); err != nil {
		return c, err
	}
	if c.instead != "" {
		return c, status.Errorf(codes.Unimplemented, "%s is not part of Leasehold: %s", path.Base(c.method), c.instead)
	}
	c.ctx = context.WithValue(door.WithCaller(ctx, door.Caller{Origin: c.origin(), Proof: c.proof}), callKey{}, c)
	return c, nil
}

// admit refuses a call before its message is read, and accounts for that. What it lets in is entered as any other. It
// returns the context with who asks.
func (d *Door) admit(ctx context.Context, method string) (context.Context, error) {
	c, err := d.enter(ctx, method, false)
	if err != nil {
		return ctx, c.end(err)
	}
	return c.ctx, nil
}

// login finds out who asks: by a token, or by the certificate of the connection.
func (c *call) login() (err error) {
	if anonymous[c.method] {
		return nil
	}
	if c.door.backend.AccessOn() {
		shown := credential.Shown{Secret: secretOf(c.ctx), From: c.address, Certificate: certificateOf(c.ctx)}
		if c.proof, err = c.door.backend.Prove(c.ctx, shown); err != nil {
			return err
		}
	}
	if conn := connOf(c.ctx); conn != nil {
		door.Proven(conn.Conn)
		grpcconn.FromContext(c.ctx).Proven()
	} else {
		door.ProvenIn(c.ctx)
		if s, ok := c.ctx.Value(plainKey{}).(*grpcconn.Stream); ok {
			s.Proven()
		}
	}
	return nil
}

// secretOf returns the token of a call. clientv3 sends what Authenticate gave it as "token"; the gateway and others
// send "authorization", with or without the word Bearer.
func secretOf(ctx context.Context) string {
	if token := sent(ctx, "token"); token != "" {
		return token
	}
	value := sent(ctx, "authorization")
	if scheme, token, found := strings.Cut(value, " "); found && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return value
}

// sent returns what a client sent with a call under a key.
func sent(ctx context.Context, key string) string {
	if own := grpcconn.FromContext(ctx); own != nil {
		return own.Sent(key)
	}
	if all := metadata.ValueFromIncomingContext(ctx, key); len(all) > 0 {
		return all[0]
	}
	return ""
}

// certificateOf returns the certificate of a client, if the handshake verified it.
func certificateOf(ctx context.Context) *x509.Certificate {
	var state *tls.ConnectionState
	if conn := connOf(ctx); conn != nil {
		state = conn.state
	} else if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			state = &info.State
		}
	}
	if state == nil || len(state.VerifiedChains) == 0 {
		return nil
	}
	return state.VerifiedChains[0][0]
}

// connOf returns the connection that carries a call; nil if net/http has it.
func connOf(ctx context.Context) *ownConn {
	own := grpcconn.FromContext(ctx)
	if own == nil {
		return nil
	}
	conn, _ := own.Conn().(*ownConn)
	return conn
}

// origin is where the call comes from.
func (c *call) origin() leasehold.Origin {
	return leasehold.Origin{Actor: door.Principal(c.proof), Address: c.address, Door: doorName}
}

// about notes what a call is about, for the journal.
func (c *call) about(resource, id string) {
	if c != nil {
		c.resource, c.id = resource, id
	}
}

// end accounts for a call, and returns what the client is told.
func (c *call) end(err error) error {
	told := c.statusOf(err)
	if c.account == nil {
		return told
	}
	if !c.door.backend.Starting() && !door.Anonymous(err) {
		c.engine.Note(err, c.writes, audit.Refusal{
			Origin: c.origin(), Namespace: c.door.config.Namespace, Verb: c.noted, Resource: c.resource, ID: c.id,
		})
	}
	outcome := telemetry.Outcome{
		Namespace: c.door.config.Namespace, Took: time.Since(c.began), Waited: c.waited, Endless: c.stays && !c.waited,
		Expected: c.ctx.Err() != nil || c.door.backend.Stopping().Err() != nil,
	}
	var e *leasehold.Error
	switch {
	case err == nil:
	case c.held:
		outcome.Err = &leasehold.Error{Code: leasehold.Held, Message: told.Error()}
	case errors.As(err, &e):
		outcome.Err = err
	default:
		outcome.Err = &leasehold.Error{Code: codeOf(told), Message: told.Error()}
	}
	c.account.Done(c.ctx, outcome)
	return told
}

// do carries out a command for a call.
func (d *Door) do(ctx context.Context, command core.Command) (core.Answer, error) {
	if c := callOf(ctx); c != nil {
		return c.engine.Do(ctx, command)
	}
	return d.backend.Do(ctx, command)
}

// crowdTime is how long a call waits until very many leases that ended together are gone with their keys.
const crowdTime = 5 * time.Second

// calmly tries again, for a while, what is refused because very many leases have just ended: etcd's clients would take
// the answer for a server that is overloaded.
func (d *Door) calmly(ctx context.Context, try func() error) error {
	for until := time.Now().Add(crowdTime); ; {
		err := try()
		if !core.Crowded(err) || time.Now().After(until) || !d.backend.Pause(ctx, door.Pause) {
			return err
		}
	}
}

// local returns a context whose reads ask no other server, so that they go on without a leader, and may be stale. Where
// access is on it is ctx: without a leader nobody knows who may still read.
func (d *Door) local(ctx context.Context) context.Context {
	if d.backend.AccessOn() {
		return ctx
	}
	return engine.WithStale(ctx)
}

// read looks at the state.
func (d *Door) read(ctx context.Context, fn func(core.View)) error { return d.backend.Read(ctx, fn) }

// revision reads the newest revision of the namespace.
func (d *Door) revision(ctx context.Context) (r leasehold.Revision, err error) {
	err = d.read(ctx, func(v core.View) { r = v.History(d.config.Namespace).Revision })
	return r, err
}

// noteRevision remembers the newest revision that was shown.
func (d *Door) noteRevision(r leasehold.Revision) {
	for old := d.newest.Load(); uint64(r) > old && !d.newest.CompareAndSwap(old, uint64(r)); old = d.newest.Load() {
	}
}

// known is the newest revision that this server has shown, for answers that are not worth a read.
func (d *Door) known() leasehold.Revision { return leasehold.Revision(d.newest.Load()) }

// heard tells the journal of a call what the engine decided about a command that was submitted.
func (c *call) heard(err error) {
	if c != nil && err != nil {
		c.engine.Heard(err)
	}
}
