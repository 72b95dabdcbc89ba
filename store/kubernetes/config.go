package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A target is an API server and the credentials for it.
type target struct {
	server    string
	namespace string
	token     *token
	tls       *tls.Config
	proxy     func(*http.Request) (*url.URL, error)
}

// transport returns connections to the target. They are HTTP/2, so one carries all requests; a ping notices
// when it is dead. A transport changes its TLS configuration, so each has its own.
func (t *target) transport() *http.Transport {
	return &http.Transport{
		Proxy: t.proxy, TLSClientConfig: t.tls.Clone(), ForceAttemptHTTP2: true, MaxIdleConnsPerHost: atOnce,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 10 * time.Second}).DialContext,
		HTTP2:       &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second},
	}
}

// A line is a transport that can be replaced, because a dead connection would be used until a ping fails.
type line struct {
	open func() *http.Transport
	now  atomic.Pointer[http.Transport]
}

func newLine(open func() *http.Transport) *line {
	l := &line{open: open}
	l.now.Store(open())
	return l
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) { return l.now.Load().RoundTrip(r) }

func (l *line) CloseIdleConnections() { l.now.Load().CloseIdleConnections() }

// replace makes later requests use new connections. Those that are under way keep theirs.
func (l *line) replace() { l.now.Swap(l.open()).CloseIdleConnections() }

// parameters are what the query of a URL may have.
var parameters = []string{"ca", "cert", "context", "key", "kubeconfig", "token"}

// open opens the store that a URL names:
//
//	kubernetes:///NAMESPACE[?kubeconfig=FILE&context=NAME]
//	kubernetes://host:port/NAMESPACE?token=FILE[&ca=FILE]
func open(ctx context.Context, u *url.URL, settings store.Settings) (store.Store, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, invalid("the query of the Kubernetes address cannot be read")
	}
	for name := range query {
		if !slices.Contains(parameters, name) {
			return nil, invalid("the Kubernetes address has the unknown parameter %q; known parameters: %s",
				name, strings.Join(parameters, ", "))
		}
	}
	if u.User != nil {
		return nil, invalid("the Kubernetes address has a user: write the token to a file, and name it, as in " +
			"kubernetes://host:6443/my-namespace?token=FILE")
	}
	namespace := strings.Trim(u.Path, "/")
	if strings.Contains(namespace, "/") || namespace != "" && !isPlain(namespace, maxLabel) {
		return nil, invalid("the Kubernetes address has the path %q: it is the name of one namespace, as in "+
			"kubernetes:///my-namespace", u.Path)
	}
	c := Config{
		CAFile: query.Get("ca"), TokenFile: query.Get("token"), CertFile: query.Get("cert"), KeyFile: query.Get("key"),
		Kubeconfig: query.Get("kubeconfig"), Context: query.Get("context"), KubernetesNamespace: namespace,
		Namespace: settings.Namespace, Log: settings.Log, Clock: settings.Clock,
	}
	if u.Host != "" {
		c.Server = "https://" + u.Host
	}
	s, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// target finds out where to connect to.
func (c *Config) target() (t *target, err error) {
	files := c.CAFile != "" || c.TokenFile != "" || c.CertFile != "" || c.KeyFile != ""
	switch {
	case c.Client != nil && c.Server == "":
		return nil, invalid("the configuration has a Client and no Server")
	case c.Server != "" && (c.Kubeconfig != "" || c.Context != ""):
		return nil, invalid("the address names a server and a kubeconfig: leave one of them out")
	case c.Server == "" && files:
		return nil, invalid("ca, token, cert and key need a server: kubernetes://host:6443/my-namespace?token=FILE")
	case c.Server != "":
		t, err = c.direct()
	default:
		t, err = c.found()
	}
	if err == nil && c.KubernetesNamespace != "" {
		t.namespace = c.KubernetesNamespace
	}
	return t, err
}

// direct is the target that the configuration itself describes.
func (c *Config) direct() (*target, error) {
	t := &target{server: strings.TrimRight(c.Server, "/"), token: &token{file: c.TokenFile},
		tls: &tls.Config{MinVersion: tls.VersionTLS12}, proxy: http.ProxyFromEnvironment}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, invalid("the CA of the API server cannot be read: %v", err)
		}
		if err := t.trust(text, c.CAFile); err != nil {
			return nil, err
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, invalid("the client certificate cannot be read (cert and key are files in PEM form): %v", err)
		}
		t.tls.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func (t *target) trust(text []byte, where string) error {
	t.tls.RootCAs = x509.NewCertPool()
	if !t.tls.RootCAs.AppendCertsFromPEM(text) {
		return invalid("%s has no certificate in PEM form", where)
	}
	return nil
}

// accountDir is where a pod finds its service account.
var accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// found looks where kubectl and controllers look.
func (c *Config) found() (*target, error) {
	if c.Kubeconfig != "" {
		return readKubeconfig(c.Kubeconfig, c.Context)
	}
	if files := filepath.SplitList(os.Getenv("KUBECONFIG")); len(files) > 1 {
		return nil, invalid("$KUBECONFIG names %d files: choose one, as in kubernetes:///my-namespace?kubeconfig=%s",
			len(files), files[0])
	} else if len(files) == 1 {
		return readKubeconfig(files[0], c.Context)
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host != "" && port != "" && c.Context == "" {
		return inCluster(host, port)
	}
	home, err := os.UserHomeDir()
	if err == nil {
		file := filepath.Join(home, ".kube", "config")
		if _, err = os.Stat(file); err == nil {
			return readKubeconfig(file, c.Context)
		}
	}
	return nil, invalid("there is no API server to connect to: this is not a pod of Kubernetes, $KUBECONFIG is not " +
		"set, and there is no ~/.kube/config; name a file, as in kubernetes:///my-namespace?kubeconfig=FILE")
}

// inCluster is the target of a pod.
func inCluster(host, port string) (*target, error) {
	c := Config{
		Server: "https://" + net.JoinHostPort(host, port), CAFile: filepath.Join(accountDir, "ca.crt"),
		TokenFile: filepath.Join(accountDir, "token"),
	}
	t, err := c.direct()
	if err != nil {
		return nil, err
	}
	if text, err := os.ReadFile(filepath.Join(accountDir, "namespace")); err == nil {
		t.namespace = strings.TrimSpace(string(text))
	}
	return t, nil
}

// A token is what requests show. One in a file is replaced every now and then: those of service accounts
// are valid for an hour.
type token struct {
	file string

	mu   sync.Mutex // guards what follows
	text string
	read time.Time
}

const tokenKeep = time.Minute

func (t *token) replaceable() bool { return t.file != "" }

// get returns the token; fresh: the last one was refused.
func (t *token) get(fresh bool) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == "" || !fresh && t.text != "" && time.Since(t.read) < tokenKeep {
		return t.text, nil
	}
	text, err := os.ReadFile(t.file)
	if err != nil {
		if t.text != "" && !fresh {
			return t.text, nil // it may be in the middle of its replacement
		}
		return "", invalid("the token cannot be read: %v", err)
	}
	t.text, t.read = strings.TrimSpace(string(text)), time.Now()
	return t.text, nil
}
