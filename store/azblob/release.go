package azblob

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Release ends leases and waits.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if r.Session != "" {
		return store.Require(s, store.SessionPower)
	}
	errs := make([]error, len(r.Leases))
	store.Each(len(r.Leases), atOnce, func(i int) { errs[i] = s.release(ctx, r.Leases[i]) })
	for _, err := range errs {
		if err != nil {
			return s.failure(err)
		}
	}
	return nil
}

func (s *Store) release(ctx context.Context, ref store.Ref) error {
	unlock, err := s.ids.lock(ctx, ref.ID)
	if err != nil {
		return err
	}
	defer unlock()
	l, e := s.known(ref.ID)
	if l != nil && l.token != 0 && l.resource == ref.Resource {
		// Its grant changed the ETag, so what is late was conditioned on another one. A lease whose time is
		// over is given back, too: Azure may have renewed it late, and the answer was lost.
		s.over(ref.ID, l.end(leasehold.Released))
		_, err := s.unlease(ctx, ref.Resource, ref.ID)
		return err
	}
	if e != nil && e.How != leasehold.Released {
		return nil
	}
	if err := s.put(ctx, ref.ID, mark{How: leasehold.Released.String(), At: time.Now().UTC()}); err != nil {
		return err
	}
	s.over(ref.ID, &leasehold.Ending{ID: ref.ID, How: leasehold.Released, At: time.Now()})
	return s.withdraw(ctx, ref.Resource, ref.ID)
}

// How long marks are kept, and how often some are cleaned.
const (
	markKept  = 15 * time.Minute
	cleanEach = 16
	cleanMany = int32(64)
)

// put writes the mark of an id.
func (s *Store) put(ctx context.Context, id string, m mark) error {
	if _, err := s.upload(ctx, s.names.mark(id), encode(m), nil, nil); err != nil {
		return err
	}
	s.mu.Lock()
	s.marked++
	due := s.marked%cleanEach == 0
	s.mu.Unlock()
	if due {
		s.clean(ctx, id)
	}
	return nil
}

// clean deletes old marks, some after a mark that was just written, whose time is Azure's now. Names of
// marks are hashes, so that every one has its turn.
func (s *Store) clean(ctx context.Context, id string) {
	now, err := s.container.NewBlobClient(s.names.mark(id)).GetProperties(ctx, nil)
	if err != nil {
		return
	}
	prefix, many := s.names.mark(id)[:len(s.names.marks())+1], cleanMany
	pager := s.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, MaxResults: &many})
	page, err := pager.NextPage(ctx)
	if err != nil {
		return
	}
	for _, item := range page.Segment.BlobItems {
		if item.Name != nil && item.Properties != nil &&
			value(now.LastModified).Sub(value(item.Properties.LastModified)) > markKept {
			_, _ = s.container.NewBlobClient(*item.Name).Delete(ctx, nil)
		}
	}
}
