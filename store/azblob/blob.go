package azblob

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/leasehold/leasehold"
)

// The names of metadata.
const (
	metaToken = "lease_token"
	metaID    = "lease_id"
	metaName  = "lease_name"
	metaTouch = "lease_touch" // changes the ETag
)

// A view is what is known of a resource's blob.
type view struct {
	etag    azcore.ETag
	state   azure.StateType
	meta    map[string]*string // in lower case
	written time.Time          // when the blob was last written, in whole seconds of Azure's clock
	date    time.Time          // of Azure's answer, in whole seconds
	note    note
}

func (v *view) get(name string) string {
	if text := v.meta[name]; text != nil {
		return *text
	}
	return ""
}

// id is that of the last grant; token is its token, 0: there was none.
func (v *view) id() string { return fromHeader(v.get(metaID)) }

func (v *view) token() leasehold.Token {
	n, err := strconv.ParseUint(v.get(metaToken), 10, 64)
	if err != nil {
		return 0
	}
	return leasehold.Token(n)
}

// leased reports whether somebody has the blob's lease, or will until it is broken.
func (v *view) leased() bool {
	return v.state == azure.StateTypeLeased || v.state == azure.StateTypeBreaking
}

func lower(meta map[string]*string) map[string]*string {
	all := map[string]*string{}
	for key, value := range meta {
		all[strings.ToLower(key)] = value
	}
	return all
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// look reads the blob of a resource; nil if there is none.
func (s *Store) look(ctx context.Context, resource string) (*view, error) {
	answer, err := s.container.NewBlobClient(s.names.resource(resource)).DownloadStream(ctx, nil)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	v := &view{etag: value(answer.ETag), state: value(answer.LeaseState), meta: lower(answer.Metadata),
		written: value(answer.LastModified), date: value(answer.Date)}
	v.note = noteOf(text, v.id())
	return v, nil
}

// conditions are those of a write: nothing was written since, and the lease is that of an id.
func conditions(etag *azcore.ETag, id string) *blob.AccessConditions {
	c := &blob.AccessConditions{}
	if etag != nil {
		c.ModifiedAccessConditions = &blob.ModifiedAccessConditions{IfMatch: etag}
	}
	if id != "" {
		text := leaseID(id)
		c.LeaseAccessConditions = &blob.LeaseAccessConditions{LeaseID: &text}
	}
	return c
}

func (s *Store) upload(
	ctx context.Context, name string, content []byte, meta map[string]*string, c *blob.AccessConditions,
) (azcore.ETag, error) {
	answer, err := s.container.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(content)),
		&blockblob.UploadOptions{Metadata: meta, AccessConditions: c})
	return value(answer.ETag), err
}

// create makes the blob of a resource, if there is none.
func (s *Store) create(ctx context.Context, resource string) error {
	any := azcore.ETagAny
	_, err := s.upload(ctx, s.names.resource(resource), nil, map[string]*string{metaName: toHeader(resource)},
		&blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &any}})
	if changed(err) {
		return nil
	}
	return err
}

// touch changes the ETag of a blob, so that whatever was conditioned on it fails. It reports whether the
// blob is leased: then it cannot be touched, and need not be if the lease is somebody else's, who writes.
func (s *Store) touch(ctx context.Context, resource string) (leased bool, err error) {
	v, err := s.look(ctx, resource)
	if err != nil || v == nil || v.leased() {
		return v != nil && v.leased(), err
	}
	v.meta[metaTouch] = toHeader(time.Now().Format(time.RFC3339Nano))
	_, err = s.container.NewBlobClient(s.names.resource(resource)).SetMetadata(ctx, v.meta,
		&blob.SetMetadataOptions{AccessConditions: conditions(&v.etag, "")})
	if changed(err) { // by somebody else who wrote, or who has the lease now
		return true, nil
	}
	return false, err
}

// azureLease returns a client for the lease of an id.
func (s *Store) azureLease(resource, id string) (*azure.BlobClient, error) {
	text := leaseID(id)
	return azure.NewBlobClient(s.container.NewBlobClient(s.names.resource(resource)),
		&azure.BlobClientOptions{LeaseID: &text})
}

// unlease gives the lease of an id back. It reports whether the id had it.
func (s *Store) unlease(ctx context.Context, resource, id string) (had bool, err error) {
	client, err := s.azureLease(resource, id)
	if err != nil {
		return false, err
	}
	_, err = client.ReleaseLease(ctx, nil)
	if missing(err) || changed(err) {
		return false, nil
	}
	return err == nil, err
}

// withdraw makes sure that an id with a mark has no lease, and gets none by a request that is still on its
// way: such a request is conditioned on the ETag, and may arrive between any two steps.
func (s *Store) withdraw(ctx context.Context, resource, id string) error {
	for range tries {
		if _, err := s.unlease(ctx, resource, id); err != nil {
			return err
		}
		leased, err := s.touch(ctx, resource)
		if err != nil || !leased {
			return err
		}
		if had, err := s.unlease(ctx, resource, id); err != nil || !had {
			return err
		}
	}
	return nil
}

// markOf reads the mark of an id; nil if there is none.
func (s *Store) markOf(ctx context.Context, id string) (*mark, error) {
	answer, err := s.container.NewBlobClient(s.names.mark(id)).DownloadStream(ctx, nil)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	m := &mark{}
	if json.Unmarshal(text, m) != nil {
		m = &mark{} // not ours: an id that cannot be used
	}
	return m, nil
}
