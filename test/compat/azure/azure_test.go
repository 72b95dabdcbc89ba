package azure

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// options make the SDK talk to a server once, and not again: a retry would hide what it
// was told first.
func (s *server) options() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: s.client(), Retry: policy.RetryOptions{MaxRetries: -1}}
}

func (s *server) service(url string) *service.Client {
	s.t.Helper()
	key, err := service.NewSharedKeyCredential(accountName, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := service.NewClientWithSharedKeyCredential(url, key, &service.ClientOptions{ClientOptions: s.options()})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *server) pathStyle() string { return "https://" + s.azure + "/" + accountName }

func (s *server) hostStyle() string {
	_, port, _ := strings.Cut(s.azure, ":")
	return "https://" + accountName + ".blob." + domain + ":" + port
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expectCode fails unless an error is one of the service's, with a code.
func expectCode(t *testing.T, err error, code bloberror.Code) {
	t.Helper()
	if !bloberror.HasCode(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
}

func TestSDK(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for style, url := range map[string]string{"path": s.pathStyle(), "host": s.hostStyle()} {
		t.Run(style, func(t *testing.T) { useSDK(t, s, s.service(url), style) })
	}
}

func useSDK(t *testing.T, s *server, c *service.Client, name string) {
	ctx := t.Context()
	box := c.NewContainerClient("box-" + name)
	_, err := box.GetProperties(ctx, nil)
	expectCode(t, err, bloberror.ContainerNotFound)
	_, err = box.Create(ctx, &container.CreateOptions{Metadata: map[string]*string{"Team": to.Ptr("infra")}})
	check(t, err)
	_, err = box.Create(ctx, nil)
	expectCode(t, err, bloberror.ContainerAlreadyExists)
	props, err := box.GetProperties(ctx, nil)
	check(t, err)
	if v := props.Metadata["Team"]; v == nil || *v != "infra" {
		t.Errorf("metadata is %v", props.Metadata)
	}

	// A name with everything that must be escaped.
	b := box.NewBlockBlobClient("a dir/x+y&z=ä?%#.txt")
	_, err = b.Upload(ctx, nopCloser("hello"), &blockblob.UploadOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("text/plain"), BlobCacheControl: to.Ptr("no-cache")}, Metadata: map[string]*string{"a": to.Ptr("1")},
	})
	check(t, err)
	got, err := b.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 1, Count: 3}})
	check(t, err)
	text, err := io.ReadAll(got.Body)
	check(t, err)
	if string(text) != "ell" || *got.ContentType != "text/plain" {
		t.Errorf("got %q, %v", text, *got.ContentType)
	}
	large(t, box)
	listing(t, c, box)

	// Conditions, snapshots, copies, deletion.
	_, err = b.SetMetadata(ctx, map[string]*string{"b": to.Ptr("2")}, &blob.SetMetadataOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"0x1"`))}}})
	expectCode(t, err, bloberror.ConditionNotMet)
	snap, err := b.CreateSnapshot(ctx, nil)
	check(t, err)
	copied := box.NewBlockBlobClient("copy")
	_, err = copied.StartCopyFromURL(ctx, b.URL(), nil)
	check(t, err)
	_, err = b.Delete(ctx, nil)
	expectCode(t, err, bloberror.SnapshotsPresent)
	old, err := b.WithSnapshot(*snap.Snapshot)
	check(t, err)
	_, err = old.GetProperties(ctx, nil)
	check(t, err)
	_, err = b.Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: to.Ptr(blob.DeleteSnapshotsOptionTypeInclude)})
	check(t, err)
	_, err = b.GetProperties(ctx, nil)
	expectCode(t, err, bloberror.BlobNotFound)
	shared(t, s, c, box)
	_, err = box.Delete(ctx, nil)
	check(t, err)
}

func nopCloser(s string) io.ReadSeekCloser { return seekCloser{strings.NewReader(s)} }

type seekCloser struct{ io.ReadSeeker }

func (seekCloser) Close() error { return nil }

// large uploads in blocks, as the SDK does by itself, and reads back in parallel.
func large(t *testing.T, box *container.Client) {
	t.Helper()
	ctx := t.Context()
	body := make([]byte, 9<<20+123)
	_, _ = rand.Read(body)
	b := box.NewBlockBlobClient("large")
	_, err := b.UploadStream(ctx, bytes.NewReader(body), &azblob.UploadStreamOptions{BlockSize: 1 << 20, Concurrency: 4})
	check(t, err)
	back := make([]byte, len(body))
	_, err = b.DownloadBuffer(ctx, back, &azblob.DownloadBufferOptions{BlockSize: 1 << 20, Concurrency: 4})
	check(t, err)
	if !bytes.Equal(body, back) {
		t.Error("the bytes are others")
	}
	list, err := b.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	check(t, err)
	if len(list.CommittedBlocks) != 10 || len(list.UncommittedBlocks) != 0 {
		t.Errorf("%d and %d blocks", len(list.CommittedBlocks), len(list.UncommittedBlocks))
	}
	sum := md5.Sum([]byte("whole"))
	_, err = b.Upload(ctx, nopCloser("other"), &blockblob.UploadOptions{TransactionalValidation: blob.TransferValidationTypeMD5(sum[:])})
	expectCode(t, err, bloberror.MD5Mismatch)
}

func listing(t *testing.T, c *service.Client, box *container.Client) {
	t.Helper()
	ctx := t.Context()
	for i := range 7 {
		_, err := box.NewBlockBlobClient(fmt.Sprintf("list/%d/x", i)).Upload(ctx, nopCloser("1"), nil)
		check(t, err)
	}
	names := 0
	flat := box.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: to.Ptr(int32(3)), Prefix: to.Ptr("list/"), Include: container.ListBlobsInclude{Metadata: true}})
	for flat.More() {
		page, err := flat.NextPage(ctx)
		check(t, err)
		names += len(page.Segment.BlobItems)
	}
	groups := 0
	deep := box.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{MaxResults: to.Ptr(int32(3)), Prefix: to.Ptr("list/")})
	for deep.More() {
		page, err := deep.NextPage(ctx)
		check(t, err)
		groups += len(page.Segment.BlobPrefixes)
	}
	if names != 7 || groups != 7 {
		t.Errorf("%d names and %d groups", names, groups)
	}
	found := false
	all := c.NewListContainersPager(nil)
	for all.More() {
		page, err := all.NextPage(ctx)
		check(t, err)
		for _, item := range page.ContainerItems {
			found = found || strings.HasPrefix(*item.Name, "box-")
		}
	}
	if !found {
		t.Error("the container is not listed")
	}
}

// shared uses signatures that allow a part.
func shared(t *testing.T, s *server, c *service.Client, box *container.Client) {
	t.Helper()
	ctx := t.Context()
	b := box.NewBlockBlobClient("shared")
	_, err := b.Upload(ctx, nopCloser("x"), nil)
	check(t, err)
	url, err := b.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	check(t, err)
	reader, err := blockblob.NewClientWithNoCredential(url, &blockblob.ClientOptions{ClientOptions: s.options()})
	check(t, err)
	_, err = reader.GetProperties(ctx, nil)
	check(t, err)
	_, err = reader.Upload(ctx, nopCloser("y"), nil)
	expectCode(t, err, bloberror.AuthorizationPermissionMismatch)

	over, err := b.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(-time.Minute), &blob.GetSASURLOptions{StartTime: to.Ptr(time.Now().Add(-time.Hour))})
	check(t, err)
	late, err := blockblob.NewClientWithNoCredential(over, &blockblob.ClientOptions{ClientOptions: s.options()})
	check(t, err)
	_, err = late.GetProperties(ctx, nil)
	expectCode(t, err, bloberror.AuthenticationFailed)

	url, err = c.GetSASURL(sas.AccountResourceTypes{Container: true}, sas.AccountPermissions{Read: true, List: true}, time.Now().Add(time.Hour), nil)
	check(t, err)
	lister, err := service.NewClientWithNoCredential(url, &service.ClientOptions{ClientOptions: s.options()})
	check(t, err)
	_, err = lister.NewContainerClient("none-such").GetProperties(ctx, nil)
	expectCode(t, err, bloberror.ContainerNotFound)
	_, err = lister.NewListContainersPager(nil).NextPage(ctx)
	expectCode(t, err, bloberror.AuthorizationResourceTypeMismatch)

	// A key that is not the account's.
	wrong, err := service.NewSharedKeyCredential(accountName, "AAAA")
	check(t, err)
	stranger, err := service.NewClientWithSharedKeyCredential(s.pathStyle(), wrong, &service.ClientOptions{ClientOptions: s.options()})
	check(t, err)
	_, err = stranger.NewListContainersPager(nil).NextPage(ctx)
	expectCode(t, err, bloberror.AuthenticationFailed)
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	var told *azcore.ResponseError
	if errors.As(err, &told) {
		return fmt.Sprintf("%d %s", told.StatusCode, told.ErrorCode)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "late"
	}
	return err.Error()
}
