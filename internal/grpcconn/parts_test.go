package grpcconn

import (
	"runtime"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// A request of 2 MiB makes little, whatever it is made of.
func TestBombs(t *testing.T) {
	const size, most = 2 << 20, 8 << 20
	for name, part := range map[string]string{
		"comparisons": "\x0a\x00", "operations": "\x12\x00", "gets": "\x12\x02\x0a\x00", "transactions": "\x1a\x02\x22\x00",
	} {
		b := []byte(strings.Repeat(part, size/len(part)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Unmarshal(b, new(pb.TxnRequest))
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; err == nil || made > most {
			t.Errorf("%s: %v, %d MiB", name, err, made>>20)
		}
	}
	deep := []byte{}
	for range MaxParts { // a transaction in an operation of a transaction
		if deep = append(lengthOf(0x22, deep), deep...); len(deep) < size {
			deep = append(lengthOf(0x12, deep), deep...)
		}
	}
	if err := Unmarshal(deep, new(pb.TxnRequest)); err == nil {
		t.Error("a deep one is read")
	}
}

// lengthOf returns what comes before a message in another one.
func lengthOf(tag byte, b []byte) (head []byte) {
	head = append(head, tag)
	for n := len(b); ; n >>= 7 {
		if n < 0x80 {
			return append(head, byte(n))
		}
		head = append(head, byte(n)|0x80)
	}
}

// What a transaction may have is read as before.
func TestLargeRequestsAreRead(t *testing.T) {
	txn := new(pb.TxnRequest)
	for range MaxParts / 2 { // each is two parts
		txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: []byte("key"), Value: make([]byte, 400)}}})
	}
	b, err := proto.Marshal(txn)
	if err != nil {
		t.Fatal(err)
	}
	read := new(pb.TxnRequest)
	if err := Unmarshal(b, read); err != nil || !proto.Equal(read, txn) {
		t.Error(err)
	}
}
