package etcd

import (
	"bytes"
	"encoding/json"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/grpcconn"
)

// A body makes little, whatever it is made of: of the gateway, of its streams, and of gRPC.
func TestBombs(t *testing.T) {
	for name, c := range map[string]struct {
		request    proto.Message
		list, text string
	}{
		"a transaction": {new(pb.TxnRequest), "compare", "key"}, "its operations": {new(pb.TxnRequest), "success", "key"},
		"a watch": {new(pb.WatchCreateRequest), "filters", "key"}, "a put": {new(pb.PutRequest), "value", "key"},
	} {
		t.Run(name, func(t *testing.T) {
			bombs := doortest.JSONBombs(c.list, c.text)
			bombs["ranges"] = [3]string{`{"` + c.list + `":[`, `{"request_range":{}},`, `{}]}`}
			bombs["enums"] = [3]string{`{"` + c.list + `":[`, `"NOPUT",`, `0]}`}
			doortest.Bombs(t, maxJSON, bombs, func(body []byte) {
				_ = decodeJSON(body, proto.Clone(c.request))
			})
			t.Run("as a stream", func(t *testing.T) {
				doortest.Bombs(t, maxJSON, bombs, func(body []byte) {
					s := &jsonStream{body: json.NewDecoder(bytes.NewReader(body))}
					_ = s.RecvMsg(proto.Clone(c.request))
				})
			})
		})
	}
	t.Run("messages", func(t *testing.T) {
		doortest.Bombs(t, maxRequest, map[string][3]string{
			"comparisons": {"", "\x0a\x00", ""}, "operations": {"", "\x12\x00", ""},
			"gets and puts in turn":     {"", "\x12\x04\x0a\x00\x12\x00", ""},
			"one operation, many times": {"\x12\xf0\xff\x7f", "\x0a\x00\x12\x00", ""},
			"keys":                      {"", "\x0a\x02\x0a\x00", ""}, "unknown fields": {"", "\x78\x00", ""}, "unknown groups": {"", "\x7b\x7c", ""},
			"deep unknown groups": {"", "\x7b", ""}, "unknown texts": {"", "\x7a\x00", ""},
		}, func(body []byte) {
			_ = grpcconn.Unmarshal(body, new(pb.TxnRequest))
		})
		doortest.Bombs(t, maxRequest, map[string][3]string{
			"filters": {"\x0a\x80\x80\x7e", "\x28\x00", ""}, "keys": {"\x0a\x80\x80\x7e", "\x0a\x01a", ""},
			"creations": {"", "\x0a\x00", ""}, "creations and ends in turn": {"", "\x0a\x00\x12\x00", ""},
		}, func(body []byte) {
			_ = grpcconn.Unmarshal(body, new(pb.WatchRequest))
		})
	})
}
