package zookeeper

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
)

// parents creates the parents of a mark and a node. Those of nodes are containers: ZooKeeper deletes them
// some time after their last child is gone.
func (s *Store) parents(c *session, mark, node string) error {
	if err := s.persist(c, path.Dir(mark)); err != nil || node == "" {
		return err
	}
	for range tries {
		_, err := c.conn.CreateContainer(path.Dir(node), nil, zk.FlagContainer, s.acl)
		if !errors.Is(err, zk.ErrNoNode) {
			return unlessExists(err)
		}
		if err := s.persist(c, s.paths.leases()); err != nil {
			return err
		}
	}
	return zk.ErrNoNode
}

func unlessExists(err error) error {
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// persist creates a path, and what is above it where that is missing.
func (s *Store) persist(c *session, full string) error {
	_, err := c.conn.Create(full, nil, 0, s.acl)
	if errors.Is(err, zk.ErrNoNode) && path.Dir(full) != "/" {
		if err := s.persist(c, path.Dir(full)); err != nil {
			return err
		}
		_, err = c.conn.Create(full, nil, 0, s.acl)
	}
	return unlessExists(err)
}

// markOf reads the mark of an id; nil if there is none.
func (s *Store) markOf(c *session, id string) (*mark, error) {
	data, _, err := c.conn.Get(s.paths.mark(id))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &mark{}
	if json.Unmarshal(data, m) != nil {
		m = &mark{} // not ours: an id that cannot be used
	}
	return m, nil
}

// put writes the mark of an id, and deletes its node in the same transaction, if one is named. The error
// is ErrNoNode if that is gone. Without a node, a mark that is there stays as it is.
func (s *Store) put(c *session, id string, m mark, node string) error {
	used := s.paths.mark(id)
	create := &zk.CreateRequest{Path: used, Data: encode(m), Acl: s.acl}
	ops := []any{create}
	if node != "" {
		ops = append(ops, &zk.DeleteRequest{Path: node, Version: -1})
	}
	for range tries {
		answers, err := c.multi(ops...)
		switch {
		case err == nil:
			s.clean(c, used)
			return nil
		case errors.Is(err, zk.ErrNodeExists):
			if node == "" {
				return nil
			}
			ops[0] = &zk.SetDataRequest{Path: used, Data: create.Data, Version: -1}
		case errors.Is(err, zk.ErrNoNode) && len(answers) > 0 && errors.Is(answers[0].Error, zk.ErrNoNode):
			ops[0] = create
			if err := s.parents(c, used, ""); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return &leasehold.Error{Code: leasehold.Undecided,
		Message: "the mark of " + id + " changed again and again: try again"}
}

// How long marks are kept, and how they are cleaned: with every few marks that are written, some in the same
// shard are looked at. It is by chance, because a process may write one mark in its life. The clock is
// ZooKeeper's.
const (
	markKept  = 15 * time.Minute
	cleanEach = 16
	cleanMany = 64
)

func (s *Store) clean(c *session, used string) {
	if rand.N(cleanEach) > 0 {
		return
	}
	_, stat, err := c.conn.Exists(used)
	if err != nil {
		return
	}
	shard := path.Dir(used)
	children, _, err := c.conn.Children(shard)
	if err != nil {
		return
	}
	for _, name := range children[:min(cleanMany, len(children))] {
		old := strings.Join([]string{shard, name}, "/")
		if exists, other, err := c.conn.Exists(old); err == nil && exists &&
			stat.Mtime-other.Mtime > markKept.Milliseconds() {
			_ = c.conn.Delete(old, other.Version)
		}
	}
}
