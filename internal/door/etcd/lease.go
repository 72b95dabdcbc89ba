package etcd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/id"
)

type leaseServer struct {
	pb.UnsafeLeaseServer
	*Door
}

// grantLabel is the label of a session with an id of the request that opened it: who asks for a lease that is there
// already is told so, and who asks again because it got no answer is not.
const grantLabel = "etcd-grant"

// LeaseGrant opens a session.
func (s leaseServer) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	ttl, granted, err := ttlOf(r.TTL)
	if err != nil {
		return nil, err
	}
	lease := r.ID
	if lease == 0 {
		lease = newLease()
	}
	callOf(ctx).about("", sessionOf(lease))
	mark := id.New()
	var answer core.Answer
	err = s.backend.Patiently(ctx, func() (err error) {
		answer, err = s.do(ctx, &core.OpenSession{Namespace: s.config.Namespace, ID: sessionOf(lease), TTL: ttl,
			Labels: leasehold.Labels{{Key: "door", Value: doorName}, {Key: grantLabel, Value: mark}}})
		return err
	})
	switch {
	case errors.Is(err, leasehold.ErrRefused), errors.Is(err, leasehold.ErrLost):
		return nil, rpctypes.ErrGRPCLeaseExist
	case err != nil:
		return nil, err
	case labelOf(answer.Session.Labels, grantLabel) != mark:
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	return &pb.LeaseGrantResponse{Header: s.header(s.known()), ID: lease, TTL: granted}, nil
}

// newLease returns an id that no lease has: positive, as etcd's are, and with a first digit that is not 0. etcdctl
// prints ids without leading zeros, and the session that a lease is has all of its digits.
func newLease() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return int64(binary.BigEndian.Uint64(b[:])>>1 | 1<<60)
}

func labelOf(labels leasehold.Labels, key string) string {
	for _, l := range labels {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// LeaseRevoke closes a session. A lease that is not there is told from one that is before the command, which would
// answer yes to both.
func (s leaseServer) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	session := sessionOf(r.ID)
	callOf(ctx).about("", session)
	if _, _, err := s.session(ctx, r.ID); err != nil {
		return nil, err
	}
	if _, err := s.do(ctx, &core.CloseSession{Namespace: s.config.Namespace, ID: session}); err != nil {
		return nil, noLease(err)
	}
	revision, err := s.revision(ctx)
	if err != nil {
		revision = s.known() // it is revoked all the same
	}
	return &pb.LeaseRevokeResponse{Header: s.header(revision)}, nil
}

// session reads a session, and the revision of the namespace.
func (d *Door) session(ctx context.Context, lease int64) (session leasehold.Session, r leasehold.Revision, err error) {
	var failure *leasehold.Error
	err = d.read(ctx, func(v core.View) {
		session, failure = v.Session(d.config.Namespace, cmp.Or(sessionOf(lease), "0"))
		r = v.History(d.config.Namespace).Revision
	})
	if err == nil && failure != nil {
		err = failure
	}
	return session, r, noLease(err)
}

// LeaseTimeToLive tells what is left of a session, and which keys end with it.
func (s leaseServer) LeaseTimeToLive(
	ctx context.Context, r *pb.LeaseTimeToLiveRequest,
) (*pb.LeaseTimeToLiveResponse, error) {
	session, revision, err := s.session(ctx, r.ID)
	if errors.Is(err, rpctypes.ErrGRPCLeaseNotFound) {
		if revision, err = s.revision(ctx); err != nil {
			return nil, err
		}
		return &pb.LeaseTimeToLiveResponse{Header: s.header(revision), ID: r.ID, TTL: -1}, nil
	}
	if err != nil {
		return nil, err
	}
	answer := &pb.LeaseTimeToLiveResponse{Header: s.header(revision), ID: r.ID, TTL: secondsOf(session.Remaining),
		GrantedTTL: secondsOf(session.TTL)}
	if r.Keys {
		answer.Keys, err = s.keysOf(ctx, session.ID)
	}
	return answer, err
}

// LeaseLeases lists the sessions that are leases of etcd, the one that ends first at the front.
func (s leaseServer) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	type left struct {
		lease int64
		until time.Time
	}
	var all []left
	var revision leasehold.Revision
	for after, more := "", true; more; {
		var page []leasehold.Session
		now := time.Now()
		err := s.read(ctx, func(v core.View) {
			page, after = v.Sessions(s.config.Namespace, "", after, leasehold.MaxPage)
			revision = v.History(s.config.Namespace).Revision
		})
		if err != nil {
			return nil, err
		}
		for _, session := range page {
			if lease := leaseOf(session.ID); lease != 0 {
				all = append(all, left{lease, now.Add(session.Remaining)})
			}
		}
		more = after != ""
	}
	slices.SortStableFunc(all, func(a, b left) int { return a.until.Compare(b.until) })
	answer := &pb.LeaseLeasesResponse{Header: s.header(revision)}
	for _, l := range all {
		answer.Leases = append(answer.Leases, &pb.LeaseStatus{ID: l.lease})
	}
	return answer, nil
}

// keysOf lists the keys that end with a session.
func (d *Door) keysOf(ctx context.Context, session string) (keys [][]byte, err error) {
	q := core.RecordQuery{Session: session, KeysOnly: true}
	for {
		var page core.RecordPage
		var failure *leasehold.Error
		err := d.read(ctx, func(v core.View) { page, failure = v.Records(d.config.Namespace, q) })
		switch {
		case err != nil:
			return nil, err
		case failure != nil:
			return nil, failure
		}
		for _, r := range page.Records {
			keys = append(keys, []byte(r.Path))
		}
		if !page.More {
			return keys, nil
		}
		q.From = page.Next() + "\x00"
	}
}
