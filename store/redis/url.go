package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "redis+sentinel", "redis+cluster"} {
		store.Register(scheme, open)
	}
}

func open(ctx context.Context, u *url.URL, s store.Settings) (store.Store, error) {
	c, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	c.Namespace, c.Log, c.Clock = s.Namespace, s.Log, s.Clock
	opened, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// parameters of the URL, and what each sets.
var parameters = map[string]func(*Config, string) error{
	"max-ttl":  func(c *Config, v string) (err error) { c.MaxTTL, err = time.ParseDuration(v); return err },
	"init":     func(c *Config, v string) (err error) { c.Init, err = strconv.ParseBool(v); return err },
	"strict":   func(c *Config, v string) (err error) { c.Strict, err = strconv.ParseBool(v); return err },
	"replicas": func(c *Config, v string) (err error) { c.Replicas, err = strconv.Atoi(v); return err },
	"prefix":   func(c *Config, v string) error { c.Prefix = v; return nil },
	"db":       func(c *Config, v string) (err error) { c.Options.SelectDB, err = strconv.Atoi(v); return err },
	"tls":      setTLS,
	"ca":       setCA,

	"sentinel-user":     func(c *Config, v string) error { c.Options.Sentinel.Username = v; return nil },
	"sentinel-password": func(c *Config, v string) error { c.Options.Sentinel.Password = v; return nil },
}

const known = "addr (with redis+sentinel and redis+cluster), ca, db, init, max-ttl, prefix, replicas, " +
	"sentinel-password, sentinel-user, strict, tls"

func setTLS(c *Config, v string) error {
	on, err := strconv.ParseBool(v)
	if err == nil && on && c.Options.TLSConfig == nil {
		c.Options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return err
}

func setCA(c *Config, v string) error {
	pem, err := os.ReadFile(v)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return invalid("%s has no certificate", v)
	}
	c.Options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	return nil
}

// parseURL reads an address of Redis. Errors never contain it, since it may have a password.
func parseURL(u *url.URL) (c Config, err error) {
	port := "6379"
	switch u.Scheme {
	case "redis":
		c.Options.ForceSingleClient = true
	case "rediss":
		c.Options.ForceSingleClient = true
		c.Options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	case "redis+sentinel":
		port = "26379"
	}
	c.Options.Username = u.User.Username()
	c.Options.Password, _ = u.User.Password()
	c.Options.InitAddress = []string{address(u.Host, port)}
	if err := parsePath(&c, u); err != nil {
		return c, err
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return c, invalid("the query of the URL of Redis is malformed")
	}
	for name, values := range query {
		if name == "addr" && u.Scheme != "redis" && u.Scheme != "rediss" {
			for _, v := range values {
				c.Options.InitAddress = append(c.Options.InitAddress, address(v, port))
			}
			continue
		}
		set := parameters[name]
		if set == nil {
			return c, invalid("unknown parameter %q in the URL of Redis; known are %s", name, known)
		}
		if err := set(&c, values[len(values)-1]); err != nil {
			return c, invalid("the parameter %s in the URL of Redis is wrong: %s", name, example(name))
		}
	}
	if c.Options.Sentinel.MasterSet != "" {
		c.Options.Sentinel.TLSConfig = c.Options.TLSConfig
		// The driver could miss the one message that says who is primary now.
		c.Options.Sentinel.TopologyRefreshInterval = 5 * time.Second
	}
	return c, nil
}

// parsePath reads the number of the database, or the name of what the sentinels watch.
func parsePath(c *Config, u *url.URL) (err error) {
	path := strings.Trim(u.Path, "/")
	switch {
	case u.Scheme == "redis+sentinel" && path == "":
		return invalid("the URL of Redis names no primary: redis+sentinel://host:26379/NAME?addr=host2:26379")
	case u.Scheme == "redis+sentinel":
		c.Options.Sentinel.MasterSet = path
	case path != "":
		c.Options.SelectDB, err = strconv.Atoi(path)
		if err != nil || u.Scheme == "redis+cluster" && c.Options.SelectDB != 0 {
			return invalid("the path of the URL of Redis is %q: it is the number of a database, such as /0", path)
		}
	}
	return nil
}

func example(name string) string {
	switch name {
	case "max-ttl":
		return "it is a duration, such as 10m"
	case "replicas", "db":
		return "it is a number, such as 2"
	case "ca":
		return "it is a file with certificates in PEM"
	}
	return "it is true or false"
}

// address adds what is missing to a host.
func address(host, port string) string {
	if host == "" {
		host = "localhost"
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}
