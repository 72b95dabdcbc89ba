package kubernetes

import (
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubeconfig has what is used of such a file.
type kubeconfig struct {
	Current  string `yaml:"current-context"`
	Clusters []struct {
		Name    string  `yaml:"name"`
		Cluster cluster `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string `yaml:"name"`
		User user   `yaml:"user"`
	} `yaml:"users"`
	Contexts []struct {
		Name    string `yaml:"name"`
		Context chosen `yaml:"context"`
	} `yaml:"contexts"`
}

type chosen struct {
	Cluster   string `yaml:"cluster"`
	User      string `yaml:"user"`
	Namespace string `yaml:"namespace"`
}

type cluster struct {
	Server     string `yaml:"server"`
	CA         string `yaml:"certificate-authority"`
	CAData     string `yaml:"certificate-authority-data"`
	Insecure   bool   `yaml:"insecure-skip-tls-verify"`
	ServerName string `yaml:"tls-server-name"`
	Proxy      string `yaml:"proxy-url"`
}

type user struct {
	Token     string         `yaml:"token"`
	TokenFile string         `yaml:"tokenFile"`
	Cert      string         `yaml:"client-certificate"`
	CertData  string         `yaml:"client-certificate-data"`
	Key       string         `yaml:"client-key"`
	KeyData   string         `yaml:"client-key-data"`
	Username  string         `yaml:"username"`
	Exec      map[string]any `yaml:"exec"`
	Provider  map[string]any `yaml:"auth-provider"`
}

// readKubeconfig returns the target of a context in a file; an empty name is its current context.
func readKubeconfig(file, name string) (*target, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, invalid("the kubeconfig cannot be read: %v", err)
	}
	return parseKubeconfig(text, file, name)
}

// parseKubeconfig finds the server and the credentials of a context; without a name, of the current one.
func parseKubeconfig(text []byte, file, name string) (*target, error) {
	var k kubeconfig
	if yaml.Unmarshal(text, &k) != nil { // its message may quote a token
		return nil, invalid("%s is not a kubeconfig: it cannot be read as YAML", file)
	}
	if name == "" {
		name = k.Current
	}
	var context *chosen
	var known []string
	for i, c := range k.Contexts {
		if known = append(known, c.Name); c.Name == name {
			context = &k.Contexts[i].Context
		}
	}
	if context == nil {
		return nil, invalid("%s has no context %q: choose one of %s, as in ?context=NAME", file, name,
			strings.Join(known, ", "))
	}
	t := &target{namespace: context.Namespace, proxy: http.ProxyFromEnvironment,
		tls: &tls.Config{MinVersion: tls.VersionTLS12}, token: &token{}}
	in := &directory{file: file, path: filepath.Dir(file)}
	for _, c := range k.Clusters {
		if c.Name == context.Cluster {
			err := in.cluster(t, &c.Cluster)
			if err != nil {
				return nil, err
			}
		}
	}
	if t.server == "" {
		return nil, invalid("context %q of %s names the cluster %q, which has no server", name, file, context.Cluster)
	}
	for _, u := range k.Users {
		if u.Name == context.User {
			return t, in.user(t, u.Name, &u.User)
		}
	}
	if context.User != "" {
		return nil, invalid("context %q of %s names the user %q, which the file does not have", name, file,
			context.User)
	}
	return t, nil
}

// A directory is that of a kubeconfig: relative names in the file begin there.
type directory struct{ file, path string }

func (d *directory) name(file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(d.path, file)
}

// content returns what a field has in base64, or else the file that another one names.
func (d *directory) content(what, data, file string) ([]byte, error) {
	if data != "" {
		text, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, invalid("%s has a %s-data that is not base64", d.file, what)
		}
		return text, nil
	}
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(d.name(file))
	if err != nil {
		return nil, invalid("the %s that %s names cannot be read: %v", what, d.file, err)
	}
	return text, nil
}

func (d *directory) cluster(t *target, c *cluster) error {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return invalid("%s has a server that is not an https URL", d.file)
	}
	t.server = strings.TrimRight(c.Server, "/")
	t.tls.InsecureSkipVerify = c.Insecure // as its owner wants
	t.tls.ServerName = c.ServerName
	if c.Proxy != "" {
		proxy, err := url.Parse(c.Proxy)
		if err != nil {
			return invalid("%s has a proxy-url that is not a URL", d.file)
		}
		t.proxy = http.ProxyURL(proxy)
	}
	text, err := d.content("certificate-authority", c.CAData, c.CA)
	if err != nil || text == nil {
		return err
	}
	return t.trust(text, "the certificate-authority of "+d.file)
}

func (d *directory) user(t *target, name string, u *user) error {
	if u.Exec != nil || u.Provider != nil {
		return invalid("user %q of %s gets its credentials from another program, which this store does not run: "+
			"write a token to a file (kubectl create token ACCOUNT > FILE), and use "+
			"kubernetes://host:6443/my-namespace?token=FILE", name, d.file)
	}
	if u.Username != "" {
		return invalid("user %q of %s has a user name and password, which API servers no longer accept: use a token",
			name, d.file)
	}
	if t.token = (&token{text: u.Token}); u.TokenFile != "" {
		t.token = &token{file: d.name(u.TokenFile)}
	}
	cert, err := d.content("client-certificate", u.CertData, u.Cert)
	if err != nil || cert == nil {
		return err
	}
	key, err := d.content("client-key", u.KeyData, u.Key)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return invalid("the client certificate of user %q in %s cannot be used: %v", name, d.file, err)
	}
	t.tls.Certificates = []tls.Certificate{pair}
	return nil
}
