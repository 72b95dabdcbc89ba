package grpcconn

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MaxParts is how many messages one message may have in it, at any depth. An empty one takes two bytes on the wire, and
// a hundred in memory: without a bound a small request would make a large thing, before anybody knows who sent it.
const MaxParts = 4096

// Unmarshal reads a message whose size on the wire says how large it is in memory.
func Unmarshal(b []byte, m proto.Message) error {
	if len(b) > 2*MaxParts && parts(b, m.ProtoReflect().Descriptor(), MaxParts) < 0 {
		return status.Errorf(codes.InvalidArgument, "the request has more than %d parts", MaxParts)
	}
	if err := proto.Unmarshal(b, m); err != nil {
		return status.Errorf(codes.Internal, "grpc: error unmarshalling request: %v", err)
	}
	return nil
}

// parts returns how many of those that there may be are left after a message; negative: it has too many. What cannot be
// read ends the count as it ends the reading.
func parts(b []byte, d protoreflect.MessageDescriptor, left int) int {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return left
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return left
		}
		if f := d.Fields().ByNumber(number); f != nil && f.Message() != nil && kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(b)
			if left--; left >= 0 {
				left = parts(inner, f.Message(), left)
			}
			if left < 0 {
				return left
			}
		}
		b = b[n:]
	}
	return left
}
