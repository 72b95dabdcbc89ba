package etcd

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
)

// The contract is kept by both transports: net/http's on the port that doors share, and grpc-go's on the door's own.
func TestContract(t *testing.T) {
	for name, open := range map[string]func(testing.TB, *door.Backend) door.Door{
		"shared port": func(_ testing.TB, b *door.Backend) door.Door { return New(b, Config{}).Door() },
		"own port": func(_ testing.TB, b *door.Backend) door.Door {
			return door.Door{Port: New(b, Config{}).Port("")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			doortest.Run(t, &doortest.Adapter{
				Name: doorName, Resource: "res", Waits: true, Undecided: leasehold.Undecided, Open: open, Prepare: allow,
				Dial: func(t testing.TB, with doortest.Dialer) doortest.Client {
					conn := dial(t, with)
					return &contractClient{conn: conn, lease: pb.NewLeaseClient(conn), lock: v3lockpb.NewLockClient(conn),
						kv: pb.NewKVClient(conn)}
				},
				Bad: []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
					"POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{\"k"},
			})
		})
	}
}

var (
	memberSecret, memberHash     = credential.NewToken()
	strangerSecret, strangerHash = credential.NewToken()
)

// allow turns access on, with somebody who may do everything and somebody who may do nothing.
func allow(t testing.TB, e engine.Engine) {
	t.Helper()
	_, err := e.Do(engine.WithAsker(context.Background(), &access.System), &core.ChangeAccess{Put: access.Items{
		Tokens: []*access.Token{{ID: "t-member", Hash: memberHash, Principal: "member"},
			{ID: "t-stranger", Hash: strangerHash, Principal: "stranger"}},
		Bindings: []*access.Binding{{Name: "all", Role: "admin", Principal: "member", Namespace: access.AllNamespaces}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// A contractClient locks as clients without a library do.
type contractClient struct {
	conn  *grpc.ClientConn
	lease pb.LeaseClient
	lock  v3lockpb.LockClient
	kv    pb.KVClient
}

// leaseOfHolder is the lease of a holder, the same each time that it asks.
func leaseOfHolder(holder string) int64 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(holder))
	return int64(hash.Sum32()) + 1
}

func (c *contractClient) Acquire(ctx context.Context, holder string, wait time.Duration) (doortest.Answer, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "token", memberSecret)
	lease := leaseOfHolder(holder)
	_, err := c.lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: lease, TTL: 1_000_000})
	if err != nil && rpctypes.Error(err) != rpctypes.ErrLeaseExist {
		return told(err)
	}
	// A lock without a time limit waits for ever.
	limit := time.Second
	if wait > 0 {
		limit = wait
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err = c.lock.Lock(limited, &v3lockpb.LockRequest{Name: []byte("res"), Lease: lease})
	if status.Code(err) == codes.DeadlineExceeded {
		synctest.Wait() // until the server has noticed, too
		return doortest.Answer{Code: leasehold.Held, Text: err.Error()}, nil
	}
	return told(err)
}

func (c *contractClient) Release(ctx context.Context, holder string) (doortest.Answer, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "token", memberSecret)
	key := fmt.Sprintf("res/%x", leaseOfHolder(holder))
	_, err := c.lock.Unlock(ctx, &v3lockpb.UnlockRequest{Key: []byte(key)})
	return told(err)
}

func (c *contractClient) Intrude(ctx context.Context) (doortest.Answer, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strangerSecret)
	_, err := c.kv.Range(ctx, &pb.RangeRequest{Key: []byte("res")})
	return told(err)
}

func (c *contractClient) Close() { _ = c.conn.Close() }

// told reads what a client reads: the code, and the text.
func told(err error) (doortest.Answer, error) {
	s := status.Convert(err)
	answer := doortest.Answer{Text: s.String()}
	switch s.Code() {
	case codes.OK:
	case codes.PermissionDenied:
		answer.Code = leasehold.Denied
	case codes.ResourceExhausted:
		answer.Code = leasehold.Limited
	case codes.Unavailable:
		answer.Code = leasehold.Unavailable
		if rpctypes.Error(err) == rpctypes.ErrTimeout {
			answer.Code = leasehold.Undecided
		}
	case codes.NotFound:
		answer.Code = leasehold.NotFound
	case codes.Canceled:
		return answer, err
	default:
		answer.Code = leasehold.Invalid
	}
	return answer, nil
}
