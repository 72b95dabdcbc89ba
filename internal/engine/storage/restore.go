package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A restore must not let old holders and new ones hold the same thing. So it makes a new
// cluster, with new names: servers of the old one, which may be alive, are refused. Its tokens
// continue far above all that is known, so that stores keep refusing holders from before. And
// nothing is granted until every lease that may have been granted after the backup has ended.

// RestoreOptions say how a backup is restored.
type RestoreOptions struct {
	// Name is what the server is called; empty: it says so when it starts.
	Name string
	// Quarantine is how long nothing is granted. Negative: as long as the largest TTL in
	// the backup.
	Quarantine time.Duration
	// Above is a token that somebody saw, if that may be more than the backup knows.
	Above uint64
}

// RestoredTo is the result of a restore.
type RestoredTo struct {
	Backup  BackupHead
	Cluster string // the name of the new cluster
	Server  uint64 // the id of its one member
	State   core.Restored
}

// RestoreTo makes a data directory from the backup in a file: that of a new cluster of one
// server, which others may join. The servers of the cluster that was backed up are strangers to
// it: they may be alive, and may have gone on.
func RestoreTo(dir, backup string, o RestoreOptions) (RestoredTo, error) {
	if err := mustBeEmpty(dir); err != nil {
		return RestoredTo{}, err
	}
	head, state, err := OpenBackup(backup)
	if err != nil {
		return RestoredTo{}, err
	}
	restored, err := state.FromBackup(core.Restoration{Quarantine: o.Quarantine, Above: o.Above,
		Wall: head.Time.UnixNano()})
	if err != nil {
		return RestoredTo{}, err
	}
	if err := state.Check(); err != nil {
		return RestoredTo{}, fmt.Errorf("what is in the backup contradicts itself: %w", err)
	}
	lock, err := emptyDir(dir)
	if err != nil {
		return RestoredTo{}, err
	}
	defer lock.Close()
	d := &Dir{Path: dir, identity: identity{
		Product: "leasehold", Format: FormatAt(state.Level()), Node: freshID(head.Roster), Name: rand.Text(),
		Cluster: rand.Text(), Begun: true,
	}}
	if err := fill(d, head, state, o.Name, backup); err != nil {
		d.empty()
		return RestoredTo{}, fmt.Errorf("data directory %s cannot be made: %w", dir, err)
	}
	return RestoredTo{Backup: head, Cluster: d.Cluster, Server: d.Node, State: restored}, nil
}

// mustBeEmpty refuses a directory that has anything in it, or that is none.
func mustBeEmpty(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data directory %s cannot be made: %w", dir, err)
	}
	for _, f := range files {
		if f.Name() != lockFile {
			return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
				"directory %s is not empty (it has %s): choose an empty or new one. Nothing was changed", dir,
				f.Name())}
		}
	}
	return nil
}

// emptyDir takes an empty directory for this process, and makes it if need be.
func emptyDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be made: %w", dir, err)
	}
	lock, err := takeLock(filepath.Join(dir, lockFile), dir)
	if err != nil {
		return nil, err
	}
	if err := mustBeEmpty(dir); err != nil { // somebody else may have been faster
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// empty removes what fill made. If anything is left, the next try refuses the directory.
func (d *Dir) empty() {
	for _, path := range []string{d.wal(), d.Snapshots(), d.Values(), filepath.Join(d.Path, formatFile),
		filepath.Join(d.Path, formatFile+".tmp")} {
		_ = os.RemoveAll(path)
	}
}

// freshID returns an id that no server of a cluster ever had.
func freshID(r *replica.Roster) uint64 {
	id := max(r.Next, 2) // the first of a cluster has 1
	for _, m := range r.Peers() {
		id = max(id, m.ID+1)
	}
	for _, old := range r.Removed {
		id = max(id, old+1)
	}
	return id
}

// fill writes all that a server starts from. The format file comes last: what a crash leaves
// before that, no server takes for its data.
func fill(d *Dir, head BackupHead, state *core.State, name, backup string) error {
	if err := d.fillValues(backup); err != nil {
		return err
	}
	if err := os.MkdirAll(d.Snapshots(), 0o700); err != nil {
		return err
	}
	roster := &replica.Roster{Cluster: d.Cluster, Next: d.Node + 1,
		Members: []replica.Member{{ID: d.Node, Name: name, Dir: d.Name, Voter: true}}, Level: state.Level()}
	s := replica.Snapshot{Index: head.Index, Term: head.Term, Members: &raftpb.ConfState{Voters: []uint64{d.Node}},
		Roster: roster, State: state}
	if _, err := writeState(d.Snapshots(), s, nil, nil); err != nil {
		return err
	}
	if err := d.beginAt(s.Index, s.Term, s.Members); err != nil {
		return err
	}
	if err := d.Save(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(d.Path)) // which may have it for the first time
}

// fillValues takes the large values out of a backup that was read before, and was whole.
func (d *Dir) fillValues(backup string) error {
	f, err := os.Open(backup)
	if err != nil {
		return err
	}
	defer f.Close()
	values, err := OpenValues(ValuesConfig{Dir: d.Values()})
	if err != nil {
		return err
	}
	_, _, err = readBackup(f, func(_ leasehold.Large, value io.Reader) (leasehold.Large, error) {
		return values.Put(context.Background(), value)
	})
	return errors.Join(err, SyncDir(d.Values()))
}

// beginAt makes a log that continues from a snapshot.
func (d *Dir) beginAt(index, term uint64, members *raftpb.ConfState) error {
	log, err := wal.Create(zap.NewNop(), d.wal(), []byte(strconv.FormatUint(d.Node, 10)))
	if err != nil {
		return err
	}
	err = log.SaveSnapshot(&walpb.Snapshot{Index: &index, Term: &term, ConfState: members})
	if err == nil {
		err = log.Save(&raftpb.HardState{Term: &term, Vote: new(uint64(0)), Commit: &index}, nil)
	}
	return errors.Join(err, log.Close())
}
