package postgres

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

func init() {
	store.Register("postgres", openURL)
	store.Register("postgresql", openURL)
}

// own are the parameters of a URL that are not for the driver.
var own = map[string]func(c *Config, value string) error{
	"schema": func(c *Config, value string) error {
		c.Schema = value
		return nil
	},
	"max-ttl": func(c *Config, value string) (err error) {
		if c.MaxTTL, err = time.ParseDuration(value); err != nil {
			return invalid("max-ttl is %q: write a duration, such as 5m", value)
		}
		return nil
	},
	"migrate": func(c *Config, value string) error { return yes("migrate", value, &c.Migrate) },
	"failover": func(c *Config, value string) error {
		if c.Lossless = value == "lossless"; !c.Lossless && value != "wait" {
			return invalid("failover is %q: write wait or lossless", value)
		}
		return nil
	},
	"listen": func(c *Config, value string) error {
		c.Listen = value
		return nil
	},
}

// drivers are the parameters that the driver understands. It would send any other to the server.
var drivers = []string{
	"application_name", "channel_binding", "connect_timeout", "dbname", "host", "krbspn", "krbsrvname", "passfile",
	"password", "pool_health_check_period", "pool_max_conn_idle_time", "pool_max_conn_lifetime",
	"pool_max_conn_lifetime_jitter", "pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "port", "service",
	"servicefile", "sslcert", "sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "sslsni",
	"target_session_attrs", "user",
}

func yes(name, value string, to *bool) error {
	if *to = value == "yes"; !*to && value != "no" {
		return invalid("%s is %q: write yes or no", name, value)
	}
	return nil
}

// configOf returns what a URL says, without what is not for the driver.
func configOf(u *url.URL) (Config, error) {
	var c Config
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return c, invalid("the parameters of the database URL are malformed")
	}
	for name, values := range query {
		set := own[name]
		switch {
		case len(values) != 1:
			return c, invalid("the URL has the parameter %s twice", name)
		case set != nil:
			if err := set(&c, values[0]); err != nil {
				return c, err
			}
			query.Del(name)
		case !slices.Contains(drivers, name):
			known := slices.Sorted(maps.Keys(own))
			return c, invalid("unknown parameter %q in the database URL; known are %s, and of the driver %s",
				name, strings.Join(known, ", "), strings.Join(drivers, ", "))
		}
	}
	rest := *u
	rest.RawQuery = query.Encode()
	c.URL = rest.String()
	return c, nil
}

func openURL(ctx context.Context, u *url.URL, s store.Settings) (store.Store, error) {
	c, err := configOf(u)
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
