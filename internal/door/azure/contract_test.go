package azure

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
)

func TestContract(t *testing.T) {
	dir := t.TempDir()
	book, err := azureaccount.Open(filepath.Join(dir, "accounts"), filepath.Join(dir, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := book.Create(testAccount, time.Now()); err != nil {
		t.Fatal(err)
	}
	doortest.Run(t, &doortest.Adapter{
		Name: "azure", Resource: azureblob.RootBytes + testAccount + "/box", Undecided: leasehold.Unavailable,
		Open: func(_ testing.TB, b *door.Backend) door.Door {
			return door.Door{Port: New(b, Config{Accounts: book}).Port()}
		},
		Prepare: func(t testing.TB, e engine.Engine) { prepareContainer(t, e, "box") },
		Dial: func(_ testing.TB, dial doortest.Dialer) doortest.Client {
			return &contractClient{doortest.NewHTTP(dial, codeOfFault), book}
		},
		Bad: []string{"PUT /leasehold/box?restype=container&comp=lease HTTP/1.1\r\nHost: x\r\nAuthorization: SharedKey x\r\n\r\n"},
	})
}

func prepareContainer(t testing.TB, e engine.Engine, name string) {
	t.Helper()
	path, value, err := azureaccount.NewContainer(testAccount, name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Do(context.Background(), &core.PutRecord{Namespace: "default", Path: path, Value: value}); err != nil {
		t.Fatal(err)
	}
}

// A contractClient leases a container, as Azure's libraries do.
type contractClient struct {
	*doortest.HTTP
	book *azureaccount.Book
}

// codeOfFault reads what Azure's libraries read: x-ms-error-code.
func codeOfFault(r *http.Response, _ string) leasehold.Code {
	code := r.Header.Get("X-Ms-Error-Code")
	switch {
	case r.StatusCode < 300:
		return 0
	case code == errLeasePresent.code:
		return leasehold.Held
	case code == errServerBusy.code:
		return leasehold.Unavailable
	case code == errAuthentication.code:
		return leasehold.Denied
	case code == errLeaseMismatch.code:
		return leasehold.Lost
	}
	return leasehold.Invalid
}

func (c *contractClient) ask(ctx context.Context, holder, action string, headers ...string) (doortest.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, "PUT", "http://server/"+testAccount+"/box?restype=container&comp=lease", nil)
	if err != nil {
		return doortest.Answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Header.Set("X-Ms-Lease-Action", action)
	r.Header.Set("X-Ms-Date", timeOf(time.Now().UnixNano()))
	r.Header.Set("X-Ms-Version", newestVersion)
	text := stringToSign(r, testAccount, r.URL.EscapedPath(), r.URL.Query())
	signature := base64.StdEncoding.EncodeToString(sign(c.book.Keys(testAccount)[0], text+strings.Repeat("!", len(holder)-3)))
	r.Header.Set("Authorization", "SharedKey "+testAccount+":"+signature)
	return c.Ask(r)
}

// guidFor is the lease id that a holder proposes: the same one for each try.
func guidFor(holder string) string {
	h := hex.EncodeToString([]byte(holder))
	return "00000000-0000-4000-8000-" + strings.Repeat("0", 12-len(h)) + h
}

func (c *contractClient) Acquire(ctx context.Context, holder string, _ time.Duration) (doortest.Answer, error) {
	return c.ask(ctx, holder, "acquire", "X-Ms-Lease-Duration", "-1", "X-Ms-Proposed-Lease-Id", guidFor(holder))
}

func (c *contractClient) Release(ctx context.Context, holder string) (doortest.Answer, error) {
	return c.ask(ctx, holder, "release", "X-Ms-Lease-Id", guidFor(holder))
}

// Intrude signs with a key that nobody has.
func (c *contractClient) Intrude(ctx context.Context) (doortest.Answer, error) {
	return c.ask(ctx, "intruder", "acquire", "X-Ms-Lease-Duration", "-1")
}
