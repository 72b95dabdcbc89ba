package azure

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/azureblob"
)

// bare makes a request that nobody has signed.
func bare(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "https://127.0.0.1"+target, strings.NewReader(body))
	r.RequestURI = r.URL.RequestURI()
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestSharedKey(t *testing.T) {
	b := newBench(t)
	b.container("box")
	const target = "/leasehold/box?restype=container"
	b.send(bare("GET", target, "")).expect(401, "NoAuthenticationInformation")
	b.send(bare("GET", target, "", "Authorization", "Basic abc")).expect(403, "AuthenticationFailed")
	b.send(bare("GET", target, "", "Authorization", "SharedKey leasehold")).expect(400, "InvalidHeaderValue")
	b.send(bare("GET", target, "", "Authorization", "SharedKey leasehold:!!")).expect(400, "InvalidHeaderValue")

	wrong := base64.StdEncoding.EncodeToString(make([]byte, 32))
	now := timeOf(time.Now().UnixNano())
	got := b.send(bare("GET", target, "", "Authorization", "SharedKey leasehold:"+wrong, "x-ms-date", now)).expect(403, "AuthenticationFailed")
	if !strings.Contains(got.body, "Server used following string to sign: &#39;GET") || !strings.Contains(got.body, "restype:container") {
		t.Errorf("the detail is missing: %s", got.body)
	}
	b.send(bare("GET", target, "", "Authorization", "SharedKey nobody:"+wrong, "x-ms-date", now)).expect(403, "AuthenticationFailed")
	b.send(bare("GET", "/nobody/box?restype=container", "", "Authorization", "SharedKey nobody:"+wrong, "x-ms-date", now)).expect(403, "AuthenticationFailed")
	b.send(bare("GET", target, "", "Authorization", "SharedKey leasehold:"+wrong)).expect(403, "AuthenticationFailed")

	for _, off := range []time.Duration{-16 * time.Minute, 16 * time.Minute} {
		b.ask("GET", "/box?restype=container", "", "x-ms-date", timeOf(time.Now().Add(off).UnixNano())).expect(403, "AuthenticationFailed")
	}
	for _, off := range []time.Duration{-14 * time.Minute, 14 * time.Minute} {
		b.ask("GET", "/box?restype=container", "", "x-ms-date", timeOf(time.Now().Add(off).UnixNano())).expect(200)
	}

	// A signature is for one request: not for another target, header or length.
	r := bare("PUT", "/leasehold/box/x", "1", "x-ms-blob-type", "BlockBlob")
	b.sign(r)
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.RequestURI += "y" },
		func(r *http.Request) { r.Header.Set("X-Ms-Meta-A", "1") },
		func(r *http.Request) { r.Method = "DELETE" },
		func(r *http.Request) { r.ContentLength = 2 },
		func(r *http.Request) { r.RequestURI += "?comp=metadata" },
	} {
		other := r.Clone(t.Context())
		change(other)
		b.send(other).expect(403, "AuthenticationFailed")
	}
	lite := bare("GET", target, "", "x-ms-date", now, "x-ms-version", newestVersion)
	text := stringToSignLite(lite, testAccount, "/leasehold/box", lite.URL.Query())
	lite.Header.Set("Authorization", "SharedKeyLite leasehold:"+base64.StdEncoding.EncodeToString(sign(b.book.Keys(testAccount)[1], text)))
	b.send(lite).expect(200)
}

// The string to sign of Azure's own documentation.
func TestStringToSign(t *testing.T) {
	r := httptest.NewRequest("GET", "https://myaccount.blob.core.windows.net/mycontainer?comp=metadata&restype=container&timeout=20", nil)
	r.Header.Set("X-Ms-Date", "Fri, 26 Jun 2015 23:39:12 GMT")
	r.Header.Set("X-Ms-Version", "2015-02-21")
	want := "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
	if got := stringToSign(r, "myaccount", "/mycontainer", r.URL.Query()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// signedURL adds a signature for a blob or a container to a query.
func (b *bench) signedURL(at azureblob.Place, q url.Values) string {
	q.Set("sig", base64.StdEncoding.EncodeToString(sign(b.book.Keys(testAccount)[0], serviceText(q, at))))
	return q.Encode()
}

func TestServiceSAS(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/x", "1")
	at := azureblob.Place{Account: testAccount, Container: "box", Blob: "x"}
	query := func(change ...string) url.Values {
		q := url.Values{"sv": {"2021-12-02"}, "sr": {"b"}, "sp": {"r"}, "se": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}
		for i := 0; i < len(change); i += 2 {
			q.Set(change[i], change[i+1])
		}
		return q
	}
	ask := func(method, path string, q url.Values) reply {
		return b.send(bare(method, "/leasehold"+path+"?"+b.signedURL(at, q), "", "x-ms-blob-type", "BlockBlob"))
	}
	ask("GET", "/box/x", query()).expect(200)
	ask("GET", "/box/x", query("sv", "2019-02-02")).expect(200)
	ask("GET", "/box/x", query("sv", "2016-05-31")).expect(200)
	ask("GET", "/box/x", query("sr", "c")).expect(200)
	ask("PUT", "/box/x", query()).expect(403, "AuthorizationPermissionMismatch")
	ask("PUT", "/box/x", query("sp", "rw")).expect(201)
	ask("GET", "/box/y", query()).expect(403, "AuthenticationFailed")
	ask("GET", "/box/x", query("se", time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))).expect(403, "AuthenticationFailed")
	ask("GET", "/box/x", query("st", time.Now().Add(time.Minute).UTC().Format(time.RFC3339))).expect(403, "AuthenticationFailed")
	ask("GET", "/box/x", query("se", "never")).expect(403, "AuthenticationFailed")
	ask("GET", "/box/x", query("sip", "10.0.0.1-10.0.0.9")).expect(403, "AuthorizationSourceIPMismatch")
	ask("GET", "/box/x", query("sip", "192.0.2.1")).expect(200)
	ask("GET", "/box/x", query("si", "policy")).expect(403, "AuthenticationFailed")
	ask("GET", "/box/x", query("sv", "2012-02-12")).expect(403, "AuthenticationFailed")
	ask("GET", "/box/x", query("sr", "d")).expect(403, "AuthenticationFailed")
	q := query()
	b.signedURL(at, q)
	q.Set("sp", "rwdl") // more than was signed
	b.send(bare("GET", "/leasehold/box/x?"+q.Encode(), "")).expect(403, "AuthenticationFailed")
	// A container is listed by who may list it, and deleted by who has a key.
	box := azureblob.Place{Account: testAccount, Container: "box"}
	list := query("sr", "c", "sp", "rwdl")
	b.send(bare("GET", "/leasehold/box?restype=container&comp=list&"+b.signedURL(box, list), "")).expect(200)
	b.send(bare("DELETE", "/leasehold/box?restype=container&"+b.signedURL(box, list), "")).expect(403, "AuthorizationFailure")
	// Who may write one blob may not read another by copying it.
	other := "https://127.0.0.1/leasehold/box/secret"
	b.blob("box/secret", "1")
	r := bare("PUT", "/leasehold/box/x?"+b.signedURL(at, query("sp", "w")), "", "x-ms-copy-source", other)
	b.send(r).expect(403, "CannotVerifyCopySource")
	secret := azureblob.Place{Account: testAccount, Container: "box", Blob: "secret"}
	r = bare("PUT", "/leasehold/box/x?"+b.signedURL(at, query("sp", "w")), "", "x-ms-copy-source", other+"?"+b.signedURL(secret, query()))
	b.send(r).expect(202)
}

func TestAccountSAS(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/x", "1")
	ask := func(method, target string, change ...string) reply {
		q := url.Values{"sv": {"2021-12-02"}, "ss": {"b"}, "srt": {"sco"}, "sp": {"rwdl"}, "se": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, "spr": {"https"}}
		for i := 0; i < len(change); i += 2 {
			q.Set(change[i], change[i+1])
		}
		q.Set("sig", base64.StdEncoding.EncodeToString(sign(b.book.Keys(testAccount)[1], accountText(q, testAccount))))
		sep := "?"
		if strings.Contains(target, "?") {
			sep = "&"
		}
		return b.send(bare(method, "/leasehold"+target+sep+q.Encode(), "", "x-ms-blob-type", "BlockBlob"))
	}
	ask("GET", "/box/x").expect(200)
	ask("GET", "?comp=list").expect(200)
	ask("PUT", "/new?restype=container").expect(201)
	ask("GET", "/box/x", "srt", "sc").expect(403, "AuthorizationResourceTypeMismatch")
	ask("GET", "/box/x", "ss", "qt").expect(403, "AuthorizationServiceMismatch")
	ask("PUT", "/box/x", "sp", "rl").expect(403, "AuthorizationPermissionMismatch")
	ask("GET", "/box/x", "spr", "http").expect(403, "AuthorizationProtocolMismatch")
	ask("GET", "/box/x", "sv", "2019-02-02").expect(200)
}

// login asks for a token.
func (b *bench) login(id, secret string) (string, reply) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}, "scope": {"https://storage.azure.com/.default"}}
	got := b.send(bare("POST", "/login/t/oauth2/v2.0/token", form.Encode()))
	var answer struct {
		Token string `json:"access_token"`
	}
	_ = json.Unmarshal([]byte(got.body), &answer)
	return answer.Token, got
}

func TestBearer(t *testing.T) {
	b := newBench(t)
	b.container("box")
	if _, err := b.book.Create("other", time.Now()); err != nil {
		t.Fatal(err)
	}
	key := base64.StdEncoding.EncodeToString(b.book.Keys(testAccount)[0])
	for _, bad := range [][2]string{{"x", ""}, {"x", "wrong"}, {"other", key}, {testAccount, base64.StdEncoding.EncodeToString(make([]byte, 64))}} {
		if token, got := b.login(bad[0], bad[1]); token != "" || got.status != 401 {
			t.Errorf("%v got %d", bad, got.status)
		}
	}
	token, got := b.login("00000000-0000-0000-0000-00000000000b", key)
	if got.status != 200 || token == "" {
		t.Fatalf("login: %d %s", got.status, got.body)
	}
	ask := func(token, target string) reply {
		return b.send(bare("GET", target, "", "Authorization", "Bearer "+token, "x-ms-version", newestVersion))
	}
	ask(token, "/leasehold/box?restype=container").expect(200)
	ask(token, "/other/box?restype=container").expect(403, "AuthorizationPermissionMismatch")
	ask(token+"x", "/leasehold/box?restype=container").expect(401, "InvalidAuthenticationInfo")
	ask("a.b", "/leasehold/box?restype=container").expect(401, "InvalidAuthenticationInfo")
	if _, ok := b.door.openToken(token, time.Now().Add(tokenTime)); ok {
		t.Error("a token outlives its time")
	}

	const arm = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/"
	if got := ask(token, arm+"leasehold?api-version=2023-01-01"); got.status != 200 || !strings.Contains(got.body, `"blob":"https://127.0.0.1/leasehold"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := ask(token, arm+"other"); got.status != 403 {
		t.Errorf("another account: %d", got.status)
	}
	if got := ask("x", arm+"leasehold"); got.status != 401 {
		t.Errorf("no token: %d", got.status)
	}
	keys := b.send(bare("POST", arm+"leasehold/listKeys?$expand=kerb", "", "Authorization", "Bearer "+token))
	if keys.status != 200 || !strings.Contains(keys.body, key) || !strings.Contains(keys.body, "FULL") {
		t.Errorf("%d %s", keys.status, keys.body)
	}
	// With the key goes the token.
	if _, err := b.book.Rotate(testAccount, 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	ask(token, "/leasehold/box?restype=container").expect(401, "InvalidAuthenticationInfo")
}

func TestEndpoints(t *testing.T) {
	b := newBench(t)
	r := httptest.NewRequest("GET", "https://10.1.2.3:8443/metadata/endpoints?api-version=2022-09-01", nil)
	r.RequestURI = r.URL.RequestURI()
	got := b.send(r)
	for _, want := range []string{`"resourceManager":"https://10.1.2.3:8443"`, `"loginEndpoint":"https://10.1.2.3:8443/login"`, `"storage":"leasehold.test:8443"`, `"microsoftGraphResourceId"`, `"name":"Leasehold"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s: %s", want, got.body)
		}
	}
	for _, target := range []string{"/metadata/other", "/login/x", "/subscriptions/x", "/graph"} {
		if got := b.send(bare("GET", target, "")); got.status != 404 {
			t.Errorf("%s: %d", target, got.status)
		}
	}
}

func TestHostStyle(t *testing.T) {
	b := newBench(t)
	b.container("box")
	r := httptest.NewRequest("GET", "https://leasehold.blob.leasehold.test:8443/box?restype=container", nil)
	b.sign(r)
	b.send(r).expect(200)
	// What looks like our own addresses is a container there.
	r = httptest.NewRequest("PUT", "https://leasehold.blob.leasehold.test:8443/metadata?restype=container", nil)
	b.sign(r)
	b.send(r).expect(201)
}

// Whoever may delete a blob may break the lease that is in the way, and nothing else.
func TestSASOfLeases(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/x", "1")
	at := azureblob.Place{Account: testAccount, Container: "box", Blob: "x"}
	lease := func(permissions string, headers ...string) reply {
		q := url.Values{"sv": {"2021-12-02"}, "sr": {"b"}, "sp": {permissions}, "se": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}
		return b.send(bare("PUT", "/leasehold/box/x?comp=lease&"+b.signedURL(at, q), "", headers...))
	}
	acquire := []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA}
	lease("d", acquire...).expect(403, "AuthorizationPermissionMismatch")
	lease("w", acquire...).expect(201)
	for _, action := range []string{"renew", "change", "release"} {
		lease("rdl", "x-ms-lease-action", action, "x-ms-lease-id", idA, "x-ms-proposed-lease-id", idA).expect(403, "AuthorizationPermissionMismatch")
	}
	lease("r", "x-ms-lease-action", "break").expect(403, "AuthorizationPermissionMismatch")
	lease("d", "x-ms-lease-action", "Break", "x-ms-lease-break-period", "0").expect(202)
	lease("w", "x-ms-lease-action", "break").expect(202)
}

// A signature that cannot say which snapshot it is for is for none.
func TestOldSASReadsNoSnapshots(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/x", "1")
	snapshot := b.ask("PUT", "/box/x?comp=snapshot", "").expect(201).get("x-ms-snapshot")
	at := azureblob.Place{Account: testAccount, Container: "box", Blob: "x", Snapshot: snapshot}
	read := func(version, kind string) reply {
		q := url.Values{"sv": {version}, "sr": {kind}, "sp": {"r"}, "se": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}
		return b.send(bare("GET", "/leasehold/box/x?snapshot="+url.QueryEscape(snapshot)+"&"+b.signedURL(at, q), ""))
	}
	read("2017-11-09", "b").expect(403, "AuthorizationFailure")
	read("2017-11-09", "bs").expect(403, "AuthorizationFailure")
	read("2018-11-09", "bs").expect(200)
	read("2021-12-02", "bs").expect(200)
	read("2017-11-09", "c").expect(200)
}
