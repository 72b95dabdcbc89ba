package node

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A knock sends requests on one connection, one after the other, until it is told to leave.
type knock struct {
	name   string
	client *http.Client
	url    string
	sent   atomic.Int64
}

// until sends until the first 503, and returns what went wrong.
func (k *knock) until() error {
	for {
		response, err := k.client.Get(k.url)
		if err != nil {
			return fmt.Errorf("%s, request %d: %w", k.name, k.sent.Load(), err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		switch k.sent.Add(1); {
		case err != nil:
			return fmt.Errorf("%s: %w", k.name, err)
		case response.StatusCode != http.StatusServiceUnavailable:
		case response.Header.Get("Retry-After") == "":
			return fmt.Errorf("%s: a 503 that does not say when to try again", k.name)
		case response.ProtoMajor == 1 && !response.Close:
			return fmt.Errorf("%s: a 503 on a connection that stays", k.name)
		default:
			return nil
		}
	}
}

// Whoever has a connection and sends on it when the server is told to stop gets an answer, on
// every port.
func TestStoppingCutsNobodyOff(t *testing.T) {
	cert, key := serverCertificate(t, "127.0.0.1")
	dir := t.TempDir()
	plain, written, stop := begin(t, map[string]string{
		"drain-linger": "30s", // as long as it takes: it ends when all have left
		"pprof-listen": "127.0.0.1:0",
		"azure-listen": "127.0.0.1:0", "azure-cert": cert, "azure-key": key,
		"azure-accounts": filepath.Join(dir, "accounts"), "azure-secret-file": filepath.Join(dir, "secret"),
	})
	secure, _, stopSecure := begin(t, map[string]string{"tls-cert": cert, "tls-key": key, "drain-linger": "30s"})
	profiles := "http://" + logged(t, written, "profiles are served")
	azure := "https://" + logged(t, written, "azure clients are served")

	client := func(two bool) *http.Client {
		insecure := &tls.Config{InsecureSkipVerify: true}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: insecure, MaxConnsPerHost: 1, ForceAttemptHTTP2: two}}
	}
	one, two := func() *http.Client { return client(false) }, func() *http.Client { return client(true) }
	var knocks []*knock
	for range 4 {
		knocks = append(knocks,
			&knock{name: "native", client: one(), url: "http://" + plain + "/v1/resources"},
			&knock{name: "terraform", client: one(), url: "http://" + plain + "/terraform/x"},
			&knock{name: "azure", client: one(), url: azure + "/metadata/endpoints"},
			&knock{name: "profiles", client: one(), url: profiles + "/debug/pprof/cmdline"},
			&knock{name: "TLS", client: one(), url: "https://" + secure + "/v1/resources"},
			&knock{name: "HTTP/2", client: two(), url: "https://" + secure + "/v1/resources"})
	}
	ended := make(chan error, len(knocks))
	for _, k := range knocks {
		defer k.client.CloseIdleConnections()
		go func() { ended <- k.until() }()
	}
	for _, k := range knocks {
		for k.sent.Load() < 3 {
			select {
			case err := <-ended:
				t.Fatalf("before anybody stopped it: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	stop()
	stopSecure()
	for range knocks {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A half is a request of which half of the body was sent.
type half struct {
	body   string
	w      *io.PipeWriter
	result chan string // the status, or an error
}

// post sends half of a request.
func post(t *testing.T, client *http.Client, url, kind, body string) *half {
	t.Helper()
	r, w := io.Pipe()
	h := &half{body, w, make(chan string, 1)}
	begun := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(begun) }})
	request, err := http.NewRequestWithContext(ctx, "POST", url, r)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Expect", "100-continue") // so that the server says when it has begun to read
	request.ContentLength = int64(len(body))
	go func() {
		response, err := client.Do(request)
		_ = r.CloseWithError(err)
		if err != nil {
			h.result <- err.Error()
			return
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		h.result <- fmt.Sprint(response.StatusCode, err)
	}()
	if _, err := io.WriteString(w, body[:len(body)/2]); err != nil {
		t.Fatal(err)
	}
	<-begun
	return h
}

func (h *half) finish(t *testing.T, want string) {
	t.Helper()
	_, err := io.WriteString(h.w, h.body[len(h.body)/2:])
	_ = h.w.Close()
	if got := <-h.result; got != want {
		t.Errorf("got %s, want %s (%v)", got, want, err)
	}
}

// A request that was begun before is finished, also one whose body is still coming.
func TestStoppingFinishesWhatWasBegun(t *testing.T) {
	cert, key := serverCertificate(t, "127.0.0.1")
	dir := t.TempDir()
	plain, written, stop := begin(t, map[string]string{
		"azure-listen": "127.0.0.1:0", "azure-cert": cert, "azure-key": key,
		"azure-accounts": filepath.Join(dir, "accounts"), "azure-secret-file": filepath.Join(dir, "secret"),
	})
	azure := "https://" + logged(t, written, "azure clients are served")
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ExpectContinueTimeout: time.Minute,
	}}
	defer client.CloseIdleConnections()
	acquire := post(t, client, "http://"+plain+"/v1/acquire", "application/json", `{"resource":"r","holder":"h","id":"i"}`)
	login := post(t, client, azure+"/login/x/oauth2/token", "application/x-www-form-urlencoded", "grant_type=client_credentials&client_secret=x")
	stop()
	for !strings.Contains(statusOf(t, client, "http://"+plain+"/readyz"), "503") {
		time.Sleep(time.Millisecond)
	}
	acquire.finish(t, "200 <nil>")
	login.finish(t, "401 <nil>")
}

func statusOf(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Status
}
