package azure

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// leaseFor leases a blob without end, under an id.
func leaseFor(t *testing.T, b *blob.Client, id string) {
	t.Helper()
	l, err := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: to.Ptr(id)})
	check(t, err)
	_, err = l.AcquireLease(t.Context(), -1, nil)
	check(t, err)
}

// A store is something that speaks Azure Blob Storage.
type store struct {
	name string
	url  string
	key  string
	http *http.Client
	sdk  *service.Client
}

func newStore(t *testing.T, name, url, key string, client *http.Client) *store {
	t.Helper()
	credential, err := service.NewSharedKeyCredential(accountName, key)
	check(t, err)
	sdk, err := service.NewClientWithSharedKeyCredential(url, credential, &service.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}})
	check(t, err)
	return &store{name, url, key, client, sdk}
}

const (
	idA = "aaaaaaaa-1111-4111-8111-111111111111"
	idB = "bbbbbbbb-2222-4222-8222-222222222222"
	idC = "cccccccc-3333-4333-8333-333333333333"
)

var letters = map[string]string{idA: "A", idB: "B", idC: "C"}

// A leaser does the five things to a lease on a blob or a container.
type leaser interface {
	acquire(ctx context.Context, id string, seconds int32) (string, error)
	renew(ctx context.Context, id string) error
	change(ctx context.Context, id, next string) (string, error)
	release(ctx context.Context, id string) error
	breakIn(ctx context.Context, period *int32) (int32, error)
	state(ctx context.Context) (string, error)
}

type blobLeaser struct{ b *blob.Client }

func (l blobLeaser) of(id string) *lease.BlobClient {
	o := &lease.BlobClientOptions{}
	if id != "" {
		o.LeaseID = to.Ptr(id)
	}
	c, _ := lease.NewBlobClient(l.b, o)
	return c
}

func (l blobLeaser) acquire(ctx context.Context, id string, seconds int32) (string, error) {
	r, err := l.of(id).AcquireLease(ctx, seconds, nil)
	return text(r.LeaseID), err
}
func (l blobLeaser) renew(ctx context.Context, id string) error {
	_, err := l.of(id).RenewLease(ctx, nil)
	return err
}
func (l blobLeaser) change(ctx context.Context, id, next string) (string, error) {
	r, err := l.of(id).ChangeLease(ctx, next, nil)
	return text(r.LeaseID), err
}
func (l blobLeaser) release(ctx context.Context, id string) error {
	_, err := l.of(id).ReleaseLease(ctx, nil)
	return err
}
func (l blobLeaser) breakIn(ctx context.Context, period *int32) (int32, error) {
	r, err := l.of("").BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: period})
	return number(r.LeaseTime), err
}
func (l blobLeaser) state(ctx context.Context) (string, error) {
	r, err := l.b.GetProperties(ctx, nil)
	if err != nil {
		return "", err
	}
	return string(*r.LeaseState), nil
}

type containerLeaser struct{ c *container.Client }

func (l containerLeaser) of(id string) *lease.ContainerClient {
	o := &lease.ContainerClientOptions{}
	if id != "" {
		o.LeaseID = to.Ptr(id)
	}
	c, _ := lease.NewContainerClient(l.c, o)
	return c
}

func (l containerLeaser) acquire(ctx context.Context, id string, seconds int32) (string, error) {
	r, err := l.of(id).AcquireLease(ctx, seconds, nil)
	return text(r.LeaseID), err
}
func (l containerLeaser) renew(ctx context.Context, id string) error {
	_, err := l.of(id).RenewLease(ctx, nil)
	return err
}
func (l containerLeaser) change(ctx context.Context, id, next string) (string, error) {
	r, err := l.of(id).ChangeLease(ctx, next, nil)
	return text(r.LeaseID), err
}
func (l containerLeaser) release(ctx context.Context, id string) error {
	_, err := l.of(id).ReleaseLease(ctx, nil)
	return err
}
func (l containerLeaser) breakIn(ctx context.Context, period *int32) (int32, error) {
	r, err := l.of("").BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: period})
	return number(r.LeaseTime), err
}
func (l containerLeaser) state(ctx context.Context) (string, error) {
	r, err := l.c.GetProperties(ctx, nil)
	if err != nil {
		return "", err
	}
	return string(*r.LeaseState), nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func number(n *int32) int32 {
	if n == nil {
		return -1
	}
	return *n
}

// actions are what can be done to a lease. Each tells what came of it besides errors.
var actions = map[string]func(ctx context.Context, l leaser) (string, error){
	"acquire":            func(ctx context.Context, l leaser) (string, error) { return who(l.acquire(ctx, "", 60)) },
	"acquire A":          func(ctx context.Context, l leaser) (string, error) { return who(l.acquire(ctx, idA, 60)) },
	"acquire A for 30":   func(ctx context.Context, l leaser) (string, error) { return who(l.acquire(ctx, idA, 30)) },
	"acquire A for ever": func(ctx context.Context, l leaser) (string, error) { return who(l.acquire(ctx, idA, -1)) },
	"acquire B":          func(ctx context.Context, l leaser) (string, error) { return who(l.acquire(ctx, idB, 60)) },
	"renew A":            func(ctx context.Context, l leaser) (string, error) { return "", l.renew(ctx, idA) },
	"renew B":            func(ctx context.Context, l leaser) (string, error) { return "", l.renew(ctx, idB) },
	"change A to B":      func(ctx context.Context, l leaser) (string, error) { return who(l.change(ctx, idA, idB)) },
	"change B to A":      func(ctx context.Context, l leaser) (string, error) { return who(l.change(ctx, idB, idA)) },
	"change B to C":      func(ctx context.Context, l leaser) (string, error) { return who(l.change(ctx, idB, idC)) },
	"release A":          func(ctx context.Context, l leaser) (string, error) { return "", l.release(ctx, idA) },
	"release B":          func(ctx context.Context, l leaser) (string, error) { return "", l.release(ctx, idB) },
	"break":              func(ctx context.Context, l leaser) (string, error) { return left(l.breakIn(ctx, nil)) },
	"break at once":      func(ctx context.Context, l leaser) (string, error) { return left(l.breakIn(ctx, to.Ptr(int32(0)))) },
	"break in 20":        func(ctx context.Context, l leaser) (string, error) { return left(l.breakIn(ctx, to.Ptr(int32(20)))) },
	"release A, then again": func(ctx context.Context, l leaser) (string, error) {
		return "", twice(l.release(ctx, idA), l.release(ctx, idA))
	},
	"change A to B, then again": func(ctx context.Context, l leaser) (string, error) {
		_, first := l.change(ctx, idA, idB)
		_, second := l.change(ctx, idA, idB)
		return "", twice(first, second)
	},
}

func twice(first, second error) error { return fmt.Errorf("%s then %s", codeOf(first), codeOf(second)) }

func who(id string, err error) (string, error) {
	if letter, ok := letters[id]; ok {
		return letter, err
	}
	if id == "" {
		return "nobody", err
	}
	return "somebody", err
}

func left(seconds int32, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case seconds > 0:
		return "in some seconds", nil
	}
	return "at once", nil
}

// uses are what leases guard a blob from.
var uses = map[string]func(ctx context.Context, b *blockblob.Client, c *blob.LeaseAccessConditions) error{
	"put": func(ctx context.Context, b *blockblob.Client, c *blob.LeaseAccessConditions) error {
		_, err := b.Upload(ctx, nopCloser("2"), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: c}})
		return err
	},
	"set metadata": func(ctx context.Context, b *blockblob.Client, c *blob.LeaseAccessConditions) error {
		_, err := b.SetMetadata(ctx, nil, &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: c}})
		return err
	},
	"delete": func(ctx context.Context, b *blockblob.Client, c *blob.LeaseAccessConditions) error {
		_, err := b.Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: c}})
		return err
	},
	"head": func(ctx context.Context, b *blockblob.Client, c *blob.LeaseAccessConditions) error {
		_, err := b.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: c}})
		return err
	},
	"get": func(ctx context.Context, b *blockblob.Client, c *blob.LeaseAccessConditions) error {
		r, err := b.DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: c}})
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return err
	},
	"snapshot": func(ctx context.Context, b *blockblob.Client, c *blob.LeaseAccessConditions) error {
		_, err := b.CreateSnapshot(ctx, &blob.CreateSnapshotOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: c}})
		return err
	},
}

// A trial is one thing done to one blob or container in one state.
type trial struct {
	name  string
	kind  string // "blob" or "container"
	state string
	do    func(ctx context.Context, s *store, at string) string
}

var trialStates = []string{"available", "leased", "infinite", "breaking", "broken", "expired"}

func trials() (list []trial) {
	for _, kind := range []string{"blob", "container"} {
		for name, act := range actions {
			for _, state := range trialStates {
				list = append(list, trial{kind + ": " + name + " when " + state, kind, state, func(ctx context.Context, s *store, at string) string {
					l := s.leaser(kind, at)
					got, err := act(ctx, l)
					now, stateErr := l.state(ctx)
					if err != nil {
						got = codeOf(err)
					}
					return strings.TrimSpace(got + " -> " + now + codeOf(stateErr))
				}})
			}
		}
	}
	for name, use := range uses {
		for _, id := range []string{"", idA, idB} {
			for _, state := range trialStates {
				list = append(list, trial{"blob: " + name + " with " + letters[id] + " when " + state, "blob", state, func(ctx context.Context, s *store, at string) string {
					var c *blob.LeaseAccessConditions
					if id != "" {
						c = &blob.LeaseAccessConditions{LeaseID: to.Ptr(id)}
					}
					err := use(ctx, s.sdk.NewContainerClient("trials").NewBlockBlobClient(at), c)
					now, stateErr := s.leaser("blob", at).state(ctx)
					return strings.TrimSpace(codeOf(err) + " -> " + now + codeOf(stateErr))
				}})
			}
		}
	}
	for name, id := range map[string]string{"": "", "with A": idA, "with B": idB} {
		for _, state := range trialStates {
			list = append(list, trial{"container: delete " + name + " when " + state, "container", state, func(ctx context.Context, s *store, at string) string {
				o := &container.DeleteOptions{}
				if id != "" {
					o.AccessConditions = &container.AccessConditions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: to.Ptr(id)}}
				}
				_, err := s.sdk.NewContainerClient(at).Delete(ctx, o)
				return codeOf(err)
			}})
		}
	}
	for name, headers := range rawLeases {
		for _, state := range trialStates {
			list = append(list, trial{"raw: " + name + " when " + state, "blob", state, func(_ context.Context, s *store, at string) string {
				return s.raw(http.MethodPut, "/trials/"+at+"?comp=lease", headers...)
			}})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

// rawLeases are requests that the SDK would not send.
var rawLeases = map[string][]string{
	"no action":                {},
	"unknown action":           {"x-ms-lease-action", "steal"},
	"acquire without duration": {"x-ms-lease-action", "acquire"},
	"acquire for 14":           {"x-ms-lease-action", "acquire", "x-ms-lease-duration", "14"},
	"acquire for 61":           {"x-ms-lease-action", "acquire", "x-ms-lease-duration", "61"},
	"acquire for 0":            {"x-ms-lease-action", "acquire", "x-ms-lease-duration", "0"},
	"acquire by a name":        {"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", "me"},
	"renew without id":         {"x-ms-lease-action", "renew"},
	"release without id":       {"x-ms-lease-action", "release"},
	"change without ids":       {"x-ms-lease-action", "change"},
	"change to nothing":        {"x-ms-lease-action", "change", "x-ms-lease-id", idA},
	"break in 61":              {"x-ms-lease-action", "break", "x-ms-lease-break-period", "61"},
	"break in -1":              {"x-ms-lease-action", "break", "x-ms-lease-break-period", "-1"},
	"renew {A}":                {"x-ms-lease-action", "renew", "x-ms-lease-id", "{" + idA + "}"},
	"renew A without dashes":   {"x-ms-lease-action", "renew", "x-ms-lease-id", strings.ReplaceAll(idA, "-", "")},
	"renew A in capitals":      {"x-ms-lease-action", "renew", "x-ms-lease-id", strings.ToUpper(idA)},
}

// raw sends a request that is signed here, and not by the SDK.
func (s *store) raw(method, target string, headers ...string) string {
	r, err := http.NewRequest(method, s.url+target, nil)
	if err != nil {
		return err.Error()
	}
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("x-ms-version", "2023-11-03")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Header.Set("Authorization", "SharedKey "+accountName+":"+s.signature(r))
	answer, err := s.http.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return strings.TrimSpace(fmt.Sprintf("%d %s", answer.StatusCode, answer.Header.Get("x-ms-error-code")))
}

// signature signs a request without a body, as the documentation of Azure says.
func (s *store) signature(r *http.Request) string {
	var names []string
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			names = append(names, lower)
		}
	}
	slices.Sort(names)
	b := r.Method + strings.Repeat("\n", 12)
	for _, name := range names {
		b += name + ":" + r.Header.Get(name) + "\n"
	}
	b += "/" + accountName + r.URL.EscapedPath()
	query, _ := url.ParseQuery(r.URL.RawQuery)
	for _, name := range slices.Sorted(mapsKeys(query)) {
		b += "\n" + name + ":" + query.Get(name)
	}
	key, _ := base64.StdEncoding.DecodeString(s.key)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(b))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func mapsKeys(v url.Values) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range v {
			if !yield(name) {
				return
			}
		}
	}
}

func (s *store) leaser(kind, at string) leaser {
	if kind == "container" {
		return containerLeaser{s.sdk.NewContainerClient(at)}
	}
	return blobLeaser{s.sdk.NewContainerClient("trials").NewBlobClient(at)}
}

// outcomes does all trials on a store. Those that begin with an expired lease begin
// together, so that the wait is one.
func (s *store) outcomes(t *testing.T) map[string]string {
	t.Helper()
	ctx := t.Context()
	_, err := s.sdk.NewContainerClient("trials").Create(ctx, nil)
	check(t, err)
	got := map[string]string{}
	list := trials()
	at := func(i int) string { return fmt.Sprintf("t%04d", i) }
	for i, trial := range list {
		if trial.state == "expired" {
			s.make(t, trial.kind, at(i))
			_, err := s.leaser(trial.kind, at(i)).acquire(ctx, idA, 15)
			check(t, err)
		}
	}
	for i, trial := range list {
		if trial.state != "expired" {
			s.make(t, trial.kind, at(i))
			s.into(t, s.leaser(trial.kind, at(i)), trial.state)
			got[trial.name] = trial.do(ctx, s, at(i))
		}
	}
	for i, trial := range list {
		if trial.state == "expired" {
			l := s.leaser(trial.kind, at(i))
			waitFor(t, "a lease to expire", func() bool {
				state, err := l.state(ctx)
				check(t, err)
				return state == "expired"
			})
			got[trial.name] = trial.do(ctx, s, at(i))
		}
	}
	return got
}

func (s *store) make(t *testing.T, kind, at string) {
	t.Helper()
	var err error
	if kind == "container" {
		_, err = s.sdk.NewContainerClient(at).Create(t.Context(), nil)
	} else {
		_, err = s.sdk.NewContainerClient("trials").NewBlockBlobClient(at).Upload(t.Context(), nopCloser("1"), nil)
	}
	check(t, err)
}

// into brings a lease of A into a state.
func (s *store) into(t *testing.T, l leaser, state string) {
	t.Helper()
	ctx := t.Context()
	seconds := map[string]int32{"leased": 60, "infinite": -1, "breaking": 60, "broken": -1}[state]
	if seconds != 0 {
		_, err := l.acquire(ctx, idA, seconds)
		check(t, err)
	}
	if state == "breaking" {
		_, err := l.breakIn(ctx, to.Ptr(int32(50)))
		check(t, err)
	}
	if state == "broken" {
		_, err := l.breakIn(ctx, to.Ptr(int32(0)))
		check(t, err)
	}
}

// TestLeasesAsInAzurite compares every action in every state with Microsoft's emulator.
// Where that is known to differ from Azure itself, ours is as Azure's.
func TestLeasesAsInAzurite(t *testing.T) {
	t.Parallel()
	emulator := startAzurite(t)
	s := startServer(t)
	ours := newStore(t, "leasehold", s.pathStyle(), s.key, s.client())
	theirs := make(chan map[string]string, 1)
	go func() {
		defer close(theirs) // also if it fails in the midst
		theirs <- emulator.outcomes(t)
	}()
	got, want := ours.outcomes(t), <-theirs
	if want == nil {
		return // it said why
	}
	used := map[string]bool{}
	for _, name := range slices.Sorted(keysOf(got)) {
		if got[name] == want[name] {
			continue
		}
		d := differenceOf(name)
		if d == nil || d.azure != "" && !strings.HasPrefix(got[name], d.azure) {
			t.Errorf("%s: %q, and in azurite %q", name, got[name], want[name])
			continue
		}
		used[d.what] = true
	}
	t.Logf("%d trials, of which azurite differs from azure in those of %d kinds", len(got), len(used))
	for _, d := range differences {
		if !used[d.what] {
			t.Errorf("azurite no longer differs: %s", d.what)
		}
	}
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

func differenceOf(name string) *difference {
	for i := range differences {
		if differences[i].names.MatchString(name) {
			return &differences[i]
		}
	}
	return nil
}
