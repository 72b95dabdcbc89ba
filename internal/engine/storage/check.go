package storage

import (
	"errors"
	"fmt"
	"io"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/wire"
)

// A Report is what Check found in a data directory.
type Report struct {
	Counts   core.Counts
	Index    uint64 // of the last entry
	Entries  int    // read from the log, after the snapshot
	Snapshot uint64 // the index that it began from; 0: the log alone
	Checksum uint32 // names the state: equal states have equal checksums
}

// Check recovers a stopped server's data as a start would, applies all of the log, and returns
// what contradicts itself. Like a start it repairs a log whose end a crash has torn.
func Check(path string) (Report, error) {
	dir, err := OpenDir(path, false)
	if err != nil {
		return Report{}, err
	}
	defer dir.Close()
	if !dir.Begun {
		return Report{}, nil // no server ever answered from it
	}
	found, err := recoverDir(dir, nil)
	if err != nil {
		return Report{}, err
	}
	defer found.Log.Close()
	report := Report{Snapshot: found.Applied, Index: found.Applied}
	several, err := replay(found, dir.Node, &report)
	if err != nil {
		return report, err
	}
	summary, err := wire.WriteSnapshot(io.Discard, found.State)
	report.Checksum = summary.Checksum
	report.Counts = found.State.View(0).Counts()
	return report, errors.Join(err, found.State.Check(), checkValues(dir, found.State, several))
}

// checkValues reads every large value that a state names. One of several servers may lack some:
// it fetches them from the others when it runs.
func checkValues(dir *Dir, state *core.State, several bool) error {
	values, err := OpenValues(ValuesConfig{Dir: dir.Values()})
	if err != nil {
		return err
	}
	var wrong []error
	state.Larges(func(large leasehold.Large) bool {
		switch err := values.Verify(large); {
		case errors.Is(err, leasehold.ErrNotFound) && several:
		case errors.Is(err, leasehold.ErrNotFound):
			wrong = append(wrong, fmt.Errorf("large value %v is missing, and records name it", large.SHA256))
		case err != nil:
			wrong = append(wrong, err)
		}
		// Enough to see how bad it is.
		return len(wrong) < 100
	})
	return errors.Join(wrong...)
}

// replay applies what is in the log. In a cluster of one all of it is committed, since nobody
// else could say otherwise. With several members only entries up to the known commit index
// count: what follows may yet be replaced by another leader's.
func replay(found *Recovered, node uint64, report *Report) (several bool, err error) {
	hard, members, err := found.Storage.InitialState()
	if err != nil {
		return false, err
	}
	several = len(members.GetVoters())+len(members.GetLearners()) > 1
	last, err := found.Storage.LastIndex()
	if err != nil || last == found.Applied {
		return several, err
	}
	entries, err := found.Storage.Entries(found.Applied+1, last+1, 1<<62)
	if err != nil {
		return several, err
	}
	for _, e := range entries {
		// The log itself says when a cluster of one became one of several.
		several = several || takesIn(e, node)
		if several && e.GetIndex() > hard.GetCommit() {
			break
		}
		if e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
			if err := replayOne(found.State, e); err != nil {
				return several, fmt.Errorf("entry %d of the log cannot be applied: %w", e.GetIndex(), err)
			}
		}
		report.Entries++
		report.Index = e.GetIndex()
	}
	return several, nil
}

// takesIn reports whether an entry makes another server a member.
func takesIn(e *raftpb.Entry, node uint64) bool {
	var change raftpb.ConfChange
	if e.GetType() != raftpb.EntryConfChange || proto.Unmarshal(e.GetData(), &change) != nil {
		return false
	}
	adds := change.GetType() == raftpb.ConfChangeAddNode || change.GetType() == raftpb.ConfChangeAddLearnerNode
	return adds && change.GetNodeId() != node
}

// replayOne applies an entry as a node does: one stamped for another term is empty.
func replayOne(state *core.State, e *raftpb.Entry) error {
	entry, err := wire.DecodeEntry(e.GetData())
	if err != nil || entry.Term != e.GetTerm() {
		return err
	}
	_, err = state.Apply(entry.Stamp, entry.Wall, entry.Commands, entry.From)
	return err
}
