package etcd

import (
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// At one revision a key changes once. etcd refuses a transaction in which some key could be written twice on one path
// through it; the two lists of a nested transaction are never done together.

// written is what a list may write.
type written struct {
	puts    []string
	deletes []span
}

func writesOnce(r *pb.TxnRequest) error {
	for _, list := range [2][]*pb.RequestOp{r.Success, r.Failure} {
		if writes(list) < 2 {
			continue
		}
		if _, err := writtenBy(list); err != nil {
			return err
		}
	}
	return nil
}

// writes counts what in a list writes; something nested may do so twice.
func writes(list []*pb.RequestOp) (n int) {
	for _, op := range list {
		switch op.Request.(type) {
		case *pb.RequestOp_RequestPut, *pb.RequestOp_RequestDeleteRange:
			n++
		case *pb.RequestOp_RequestTxn:
			n += 2
		}
	}
	return n
}

func writtenBy(list []*pb.RequestOp) (all written, err error) {
	for _, op := range list {
		next, err := writtenByOne(op)
		if err != nil {
			return all, err
		}
		if all.meets(&next) || next.meets(&all) {
			return all, rpctypes.ErrGRPCDuplicateKey
		}
		all.puts, all.deletes = append(all.puts, next.puts...), append(all.deletes, next.deletes...)
	}
	return all, nil
}

func writtenByOne(op *pb.RequestOp) (w written, err error) {
	switch op := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		w.puts = []string{string(op.RequestPut.Key)}
	case *pb.RequestOp_RequestDeleteRange:
		if keys, some := spanOf(op.RequestDeleteRange.Key, op.RequestDeleteRange.RangeEnd); some {
			w.deletes = []span{keys}
		}
	case *pb.RequestOp_RequestTxn:
		if w, err = writtenBy(op.RequestTxn.Success); err != nil {
			return w, err
		}
		other, err := writtenBy(op.RequestTxn.Failure)
		w.puts, w.deletes = append(w.puts, other.puts...), append(w.deletes, other.deletes...)
		return w, err
	}
	return w, nil
}

// meets reports whether one writes a key that another puts.
func (w *written) meets(other *written) bool {
	return slices.ContainsFunc(other.puts, func(key string) bool {
		return slices.Contains(w.puts, key) ||
			slices.ContainsFunc(w.deletes, func(keys span) bool { return keys.holds(key) })
	})
}
