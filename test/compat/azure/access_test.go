package azure

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// admin runs a command as the first admin.
func (s *server) admin(t *testing.T, args ...string) string {
	t.Helper()
	return s.leasehold(t, append(args, "--token-file", "data/admin-token")...)
}

// as returns the SDK's client of an account.
func (s *server) as(t *testing.T, account, key string) *service.Client {
	t.Helper()
	credential, err := service.NewSharedKeyCredential(account, key)
	check(t, err)
	c, err := service.NewClientWithSharedKeyCredential("https://"+s.azure+"/"+account, credential,
		&service.ClientOptions{ClientOptions: s.options()})
	check(t, err)
	return c
}

// signed returns a client that has nothing but a signature.
func (s *server) signed(t *testing.T, url string) *blockblob.Client {
	t.Helper()
	c, err := blockblob.NewClientWithNoCredential(url, &blockblob.ClientOptions{ClientOptions: s.options()})
	check(t, err)
	return c
}

// The key of an account, and what was signed with it, allow what the bindings of that account do.
func TestAccess(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--access")
	var other struct{ Keys []string }
	check(t, json.Unmarshal([]byte(s.leasehold(t, "azure", "account", "create", "other", "-o", "json")), &other))
	s.stop() // a running one takes a second to see the account
	s.start()
	mine, theirs := s.as(t, accountName, s.key), s.as(t, "other", other.Keys[0])
	ctx := t.Context()

	// A key alone proves who asks, and allows nothing.
	box := mine.NewContainerClient("box")
	_, err := box.Create(ctx, nil)
	expectCode(t, err, bloberror.AuthorizationFailure)
	s.admin(t, "access", "bind", "member", "--to", "azure:"+accountName, "--prefix", "azure/"+accountName)
	s.admin(t, "access", "bind", "member", "--to", "azure:other", "--prefix", "azure/other/public")
	_, err = box.Create(ctx, nil)
	check(t, err)
	_, err = theirs.NewContainerClient("public").Create(ctx, nil)
	check(t, err)
	_, err = theirs.NewContainerClient("private").Create(ctx, nil)
	expectCode(t, err, bloberror.AuthorizationFailure)
	b := box.NewBlockBlobClient("x")
	_, err = b.Upload(ctx, nopCloser("secret text"), nil)
	check(t, err)
	useLease(t, b)
	useSignatures(t, s, box, b)
	wrongKeys(t, s, other.Keys[0])
	reachAround(t, s)
}

// useLease takes a blob's lease, goes on with it, and breaks it.
func useLease(t *testing.T, b *blockblob.Client) {
	t.Helper()
	ctx := t.Context()
	l, err := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: to.Ptr(idA)})
	check(t, err)
	_, err = l.AcquireLease(ctx, 60, nil)
	check(t, err)
	_, err = l.RenewLease(ctx, nil)
	check(t, err)
	_, err = b.Upload(ctx, nopCloser("without the lease"), nil)
	expectCode(t, err, bloberror.LeaseIDMissing)
	_, err = b.Upload(ctx, nopCloser("secret text"), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: to.Ptr(idA)}}})
	check(t, err)
	_, err = l.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: to.Ptr(int32(0))})
	check(t, err)
	_, err = l.RenewLease(ctx, nil)
	expectCode(t, err, bloberror.LeaseIsBrokenAndCannotBeRenewed)
}

// useSignatures does what a signature says, and not what it does not.
func useSignatures(t *testing.T, s *server, box *container.Client, b *blockblob.Client) {
	t.Helper()
	ctx, soon := t.Context(), time.Now().Add(time.Hour)
	url, err := b.GetSASURL(sas.BlobPermissions{Read: true, Write: true}, soon, nil)
	check(t, err)
	one := s.signed(t, url)
	got, err := one.DownloadStream(ctx, nil)
	check(t, err)
	if text, err := io.ReadAll(got.Body); err != nil || string(text) != "secret text" {
		t.Errorf("read %q, %v", text, err)
	}
	_, err = one.Upload(ctx, nopCloser("secret text"), nil)
	check(t, err)
	useLease(t, one)

	// Of another blob, of another container, and one that has ended.
	query := url[strings.Index(url, "?"):]
	_, err = s.signed(t, s.pathStyle()+"/box/y"+query).GetProperties(ctx, nil)
	expectCode(t, err, bloberror.AuthenticationFailed)
	whole, err := box.GetSASURL(sas.ContainerPermissions{Read: true, List: true}, soon, nil)
	check(t, err)
	query = whole[strings.Index(whole, "?"):]
	_, err = s.signed(t, s.pathStyle()+"/box/x"+query).GetProperties(ctx, nil)
	check(t, err)
	_, err = s.signed(t, s.pathStyle()+"/private/x"+query).GetProperties(ctx, nil)
	expectCode(t, err, bloberror.AuthenticationFailed)
	_, err = s.signed(t, "https://"+s.azure+"/other/box/x"+query).GetProperties(ctx, nil)
	expectCode(t, err, bloberror.AuthenticationFailed)
	over, err := b.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(-time.Minute),
		&blob.GetSASURLOptions{StartTime: to.Ptr(time.Now().Add(-time.Hour))})
	check(t, err)
	_, err = s.signed(t, over).GetProperties(ctx, nil)
	expectCode(t, err, bloberror.AuthenticationFailed)
}

// wrongKeys shows keys that do not fit.
func wrongKeys(t *testing.T, s *server, other string) {
	t.Helper()
	for account, key := range map[string]string{accountName: other, "other": s.key, "nobody": s.key} {
		_, err := s.as(t, account, key).NewContainerClient("box").GetProperties(t.Context(), nil)
		expectCode(t, err, bloberror.AuthenticationFailed)
		if strings.Contains(err.Error(), key) {
			t.Errorf("the answer has a key: %v", err)
		}
	}
}

// reachAround tries what blobs are kept in through our own API, with a member's token for that very prefix.
func reachAround(t *testing.T, s *server) {
	t.Helper()
	s.admin(t, "access", "token", "create", "ann", "--secret-file", "ann.token")
	s.admin(t, "access", "bind", "member", "--to", "ann", "--prefix", "azure")
	root := "azure/" + accountName + "/box/x"
	for _, args := range [][]string{
		{"get", root}, {"put", root, "other text"}, {"delete", root}, {"records", "azure/"}, {"versions", root},
	} {
		out, errs, err := s.try(append(args, "--token-file", "ann.token")...)
		if err == nil || !strings.Contains(errs, "that needs the verb foreign there") {
			t.Errorf("leasehold %v: %v\n%s%s", args, err, out, errs)
		}
	}
	for _, args := range [][]string{{"get", "azure.blobs/" + accountName + "/box/x"}, {"records", "azure.blobs/"}} {
		if out, _, _ := s.try(append(args, "--token-file", "ann.token")...); out != "" {
			t.Errorf("leasehold %v shows %s", args, out)
		}
	}
	if got := s.admin(t, "get", root); got != "secret text" {
		t.Errorf("an admin reads %q", got)
	}
}
