package etcd

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// FuzzTxn carries out whatever can be a transaction: it is refused or done, and the state stays right.
func FuzzTxn(f *testing.F) {
	e := memory.Start(engine.NewGoClock())
	f.Cleanup(func() { _ = e.Close() })
	server := kvServer{Door: New(door.NewBackend(e, door.Options{}), Config{})}
	for _, seed := range []*pb.TxnRequest{
		{Compare: []*pb.Compare{absent("a")}, Success: []*pb.RequestOp{opPut(&pb.PutRequest{Key: []byte("a"), PrevKv: true})}},
		{Success: []*pb.RequestOp{opPut(&pb.PutRequest{Key: []byte("P/4d"), Lease: 77})}},
		{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0},
			SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_DESCEND, Limit: 1, MaxCreateRevision: 1}}}}},
		{Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte("z")}}},
		}}}}}},
	} {
		b, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &pb.TxnRequest{}
		if proto.Unmarshal(b, r) != nil {
			return
		}
		answer, err := server.Txn(context.Background(), r)
		if (answer == nil) == (err == nil) {
			t.Fatalf("the answer is %v, and the error %v", answer, err)
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzGateway sends whatever may be JSON to every call that does not stay.
func FuzzGateway(f *testing.F) {
	e := memory.Start(engine.NewGoClock())
	f.Cleanup(func() { _ = e.Close() })
	var calls []jsonCall
	for _, route := range New(door.NewBackend(e, door.Options{}), Config{}).gatewayRoutes() {
		if c, ok := route.Handler.(jsonCall); ok && c.unary != nil && !c.door.calls[c.method].stays {
			calls = append(calls, c)
		}
	}
	if len(calls) < 20 {
		f.Fatalf("the gateway has only %d calls", len(calls))
	}
	for i := range calls {
		for _, body := range []string{`{}`, `{"key":"YQ==","value":"Yg=="}`, `{"ID":"-5","TTL":1e3}`, `[`, `{"key":"?"}`} {
			f.Add(uint8(i), body)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		w := httptest.NewRecorder()
		calls[int(which)%len(calls)].ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w.Code == 500 && strings.Contains(w.Body.String(), "mistake") {
			t.Fatalf("it panicked: %s", w.Body)
		}
	})
}
