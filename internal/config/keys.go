package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/store"
)

// A Scope says whom a setting is for.
type Scope uint8

// The scopes. Settings of the server can be in the file.
const (
	OfServer Scope = iota + 1
	OfClient
	ofFile // where the file is, which the file can't say
)

// A Key is one setting. Its flag, its variable, its place in the file, its line in
// the help and its check all come from here.
type Key struct {
	Name    string
	Scope   Scope
	Default string
	Help    string
	Values  []string // all that are allowed, if these are few
	Switch  bool     // true or false; the flag alone means true
	set     func(c *Config, value string) error
}

// Env is the key's variable.
func (k Key) Env() string { return EnvName(k.Name) }

// EnvName is the variable of the key with that name.
func EnvName(name string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// EnvPrefix begins the name of every variable that is Leasehold's.
const EnvPrefix = "LEASEHOLD_"

// keys is the table, in the order in which people are shown it.
var keys = []Key{
	{Name: "listen", Scope: OfServer, Default: "127.0.0.1:4653",
		Help: "address to serve on; one that other machines can reach needs TLS and --access, or --insecure",
		set:  setListen},
	{Name: "data", Scope: OfServer, Default: "leasehold-data",
		Help: "directory for all data; created if it does not exist", set: setData},
	{Name: "name", Scope: OfServer, Default: "n1",
		Help: "name of this server among those of its cluster", set: setName},
	{Name: "peer-listen", Scope: OfServer,
		Help: "address for the other servers of a cluster; empty: that of --initial-cluster, or none",
		set:  setPeerListen},
	{Name: "initial-cluster", Scope: OfServer,
		Help: "begin a cluster of these servers: n1=HOST:PORT,n2=HOST:PORT,… the same on all of " +
			"them; ignored once there is data",
		set: setInitialCluster},
	{Name: "join", Scope: OfServer,
		Help: "be taken into a running cluster by asking these servers, HOST:PORT[,HOST:PORT], at their peer " +
			"addresses; ignored once there is data",
		set: setJoin},
	{Name: "advertise", Scope: OfServer,
		Help: "URL at which clients reach this server, as the other servers tell it; empty: made from --listen",
		set:  setAdvertise},
	{Name: "host-names", Scope: OfServer,
		Help: "further host names that clients call this server by, NAME[,NAME], such as that of a balancer; " +
			"*.DOMAIN for all names one level below a domain",
		set: setHostNames},
	{Name: "peer-advertise", Scope: OfServer,
		Help: "HOST:PORT at which the other servers reach this one; empty: that of --initial-cluster, or --peer-listen",
		set:  setPeerAdvertise},
	{Name: "tls-cert", Scope: OfServer,
		Help: "certificate of the client port, a file of PEM; it is read again when it changes",
		set:  setFileOf(func(c *Config) *string { return &c.Server.TLS.Cert })},
	{Name: "tls-key", Scope: OfServer,
		Help: "key of --tls-cert", set: setFileOf(func(c *Config) *string { return &c.Server.TLS.Key })},
	{Name: "tls-client-ca", Scope: OfServer,
		Help: "admit only clients that have a certificate of this authority",
		set:  setFileOf(func(c *Config) *string { return &c.Server.TLS.CA })},
	{Name: "peer-cert", Scope: OfServer,
		Help: "certificate for the other servers; one of its names must be --name",
		set:  setFileOf(func(c *Config) *string { return &c.Server.PeerTLS.Cert })},
	{Name: "peer-key", Scope: OfServer,
		Help: "key of --peer-cert", set: setFileOf(func(c *Config) *string { return &c.Server.PeerTLS.Key })},
	{Name: "peer-ca", Scope: OfServer,
		Help: "authority that certified all servers of the cluster",
		set:  setFileOf(func(c *Config) *string { return &c.Server.PeerTLS.CA })},
	{Name: "drain-linger", Scope: OfServer, Default: "1s",
		Help: "how long a server that was told to stop still answers new requests, with 503, so that no client " +
			"is cut off",
		set: setDrain(func(c *Config) *time.Duration { return &c.Server.DrainLinger })},
	{Name: "drain-timeout", Scope: OfServer, Default: "10s",
		Help: "how long a server that was told to stop finishes what is under way",
		set:  setDrain(func(c *Config) *time.Duration { return &c.Server.DrainTimeout })},
	{Name: "min-free", Scope: OfServer, Default: "256MiB",
		Help: "grant nothing new while the disk has less room than this; renewals and releases go on", set: setMinFree},
	{Name: "segment-size", Scope: OfServer, Default: "64MiB",
		Help: "size of one file of the log", set: setSegmentSize},
	{Name: "snapshot-every", Scope: OfServer, Default: "64MiB",
		Help: "bytes of log between two snapshots; fewer make a restart faster", set: setSnapshotEvery},
	{Name: "journal-size", Scope: OfServer, Default: "256MiB",
		Help: "room for the journal of what was done and who held what, the newest of it; 0: none",
		set:  setJournalSize},
	{Name: "max-leases", Scope: OfServer, Default: strconv.Itoa(leasehold.DefaultCaps().Leases),
		Help: "leases that a new cluster may have; later: leasehold cluster limits set",
		set:  setCap(func(c *leasehold.Caps) *int { return &c.Leases }, leasehold.MaxCap)},
	{Name: "max-sessions", Scope: OfServer, Default: strconv.Itoa(leasehold.DefaultCaps().Sessions),
		Help: "sessions that a new cluster may have, likewise",
		set:  setCap(func(c *leasehold.Caps) *int { return &c.Sessions }, leasehold.MaxCap)},
	{Name: "max-waiters", Scope: OfServer, Default: strconv.Itoa(leasehold.DefaultCaps().Waiters),
		Help: "waiters that a new cluster may have, likewise",
		set:  setCap(func(c *leasehold.Caps) *int { return &c.Waiters }, leasehold.MaxCap)},
	{Name: "max-namespaces", Scope: OfServer, Default: strconv.Itoa(leasehold.DefaultCaps().Namespaces),
		Help: "namespaces that a new cluster may have, likewise",
		set:  setCap(func(c *leasehold.Caps) *int { return &c.Namespaces }, leasehold.MaxNamespaces)},
	{Name: "pprof-listen", Scope: OfServer,
		Help: "loopback address for profiles (/debug/pprof); empty: none", set: setPprof},
	{Name: "log-level", Scope: OfServer, Default: "info", Values: []string{"debug", "info", "warn", "error"},
		Help: "least important lines to log", set: setLogLevel},
	{Name: "log-format", Scope: OfServer, Default: "text", Values: []string{"text", "json"},
		Help: "how log lines look", set: setLogFormat},
	{Name: "access", Scope: OfServer, Default: "false", Switch: true,
		Help: "let only those in who prove who they are, and let them do what rules allow; the first start writes an " +
			"admin token to the file admin-token in the data directory",
		set: setSwitch(func(c *Config) *bool { return &c.Server.Access })},
	{Name: "access-file", Scope: OfServer,
		Help: "file that declares who may do what, as leasehold access apply takes it, applied at the start; it " +
			"turns access on; the same on all servers",
		set: setFileOf(func(c *Config) *string { return &c.Server.AccessFile })},
	{Name: "insecure", Scope: OfServer, Default: "false", Switch: true,
		Help: "let everybody who can reach the address use the server; and let servers on one machine talk " +
			"without certificates",
		set: setSwitch(func(c *Config) *bool { return &c.Server.Insecure })},
	{Name: "config", Scope: ofFile,
		Help: "YAML file with settings of the server", set: setFile},
	{Name: "server", Scope: OfClient, Default: v1.DefaultServer,
		Help: "URL of the server to talk to, or of several, with commas: the next one is asked when one cannot be " +
			"reached; a host alone means port 4653; or the URL of another store, such as redis://localhost",
		set: setServer},
	{Name: "ca", Scope: OfClient,
		Help: "authority that certified the server, a file of PEM; empty: those that this machine trusts",
		set:  setFileOf(func(c *Config) *string { return &c.Client.TLS.CA })},
	{Name: "cert", Scope: OfClient,
		Help: "your certificate, where the server wants one",
		set:  setFileOf(func(c *Config) *string { return &c.Client.TLS.Cert })},
	{Name: "key", Scope: OfClient,
		Help: "key of --cert", set: setFileOf(func(c *Config) *string { return &c.Client.TLS.Key })},
	{Name: "context", Scope: OfClient,
		Help: "context that has the other settings of a connection (leasehold context list)", set: setContext},
	{Name: "token-file", Scope: OfClient,
		Help: "file with the token that proves who you are, read again when it changes; empty: $LEASEHOLD_TOKEN",
		set:  setFileOf(func(c *Config) *string { return &c.Client.TokenFile })},
	{Name: "namespace", Scope: OfClient, Default: leasehold.DefaultNamespace,
		Help: "namespace that names are looked up in", set: setNamespace},
	{Name: "holder", Scope: OfClient,
		Help: "who you are, as others will see it; empty: user@host:pid", set: setHolder},
}

// Keys returns the table. Those of doors come last.
func Keys(doors ...Door) []Key {
	all := slices.Clone(keys)
	for _, d := range doors {
		all = append(all, d.Keys...)
	}
	return all
}

// pick returns the keys of some scopes.
func pick(doors []Door, scopes ...Scope) (picked []Key) {
	for _, key := range Keys(doors...) {
		if slices.Contains(scopes, key.Scope) {
			picked = append(picked, key)
		}
	}
	return picked
}

// ServerKeys are those that serve takes, the file's own included.
func ServerKeys(doors ...Door) []Key { return pick(doors, OfServer, ofFile) }

// ClientKeys are those of commands that talk to a server.
func ClientKeys() []Key { return pick(nil, OfClient) }

// Lookup returns the key of a name.
func Lookup(name string, doors ...Door) (Key, bool) {
	keys := Keys(doors...)
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

func setListen(c *Config, value string) (err error) {
	c.Server.Listen = value
	_, err = host(value)
	return err
}

func setData(c *Config, value string) error {
	c.Server.Data = value
	if value == "" {
		return errors.New("name a directory")
	}
	return nil
}

var hostName = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

func setHostNames(c *Config, value string) error {
	for name := range parts(value) {
		if name = strings.ToLower(name); !hostName.MatchString(name) || len(name) > 253 {
			return fmt.Errorf("%q is not a host name: write names such as leases.example.com or *.example.com, "+
				"with commas and without ports", name)
		}
		c.Server.HostNames = append(c.Server.HostNames, name)
	}
	return nil
}

func setDrain(of func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, value string) error {
		d, err := v1.ParseDuration(value)
		if err == nil && d < 0 {
			return errors.New("it can't be less than 0s")
		}
		*of(c) = d
		return err
	}
}

func setMinFree(c *Config, value string) error {
	n, err := size(value, 0)
	c.Server.MinFree = uint64(n)
	return err
}

func setSegmentSize(c *Config, value string) (err error) {
	c.Server.SegmentSize, err = size(value, 1<<20)
	return err
}

func setSnapshotEvery(c *Config, value string) (err error) {
	c.Server.SnapshotEvery, err = size(value, 1<<20)
	return err
}

func setJournalSize(c *Config, value string) (err error) {
	c.Server.JournalSize, err = size(value, 0)
	if err == nil && c.Server.JournalSize != 0 && c.Server.JournalSize < 1<<20 {
		return errors.New("a journal needs at least 1MiB; 0 turns it off")
	}
	return err
}

func setCap(field func(*leasehold.Caps) *int, most int) func(*Config, string) error {
	return func(c *Config, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("write a number from 1 to %d", most)
		}
		*field(&c.Server.Caps) = n
		return nil
	}
}

func setPprof(c *Config, value string) error {
	c.Server.PprofListen = value
	if value == "" {
		return nil
	}
	h, err := host(value)
	if err == nil && !loopback(h) {
		return errors.New("profiles show what the server has in memory: use a loopback address such as 127.0.0.1:6060")
	}
	return err
}

func setLogLevel(c *Config, value string) error {
	if err := oneOf(value, "debug", "info", "warn", "error"); err != nil {
		return err
	}
	return c.Server.LogLevel.UnmarshalText([]byte(value))
}

func setLogFormat(c *Config, value string) error {
	c.Server.LogFormat = value
	return oneOf(value, "text", "json")
}

func setSwitch(of func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, value string) (err error) {
		if *of(c), err = strconv.ParseBool(value); err != nil {
			return errors.New("use true or false")
		}
		return nil
	}
}

func setFile(c *Config, value string) error {
	c.File = value
	return nil
}

// setServer keeps the addresses as they were given. Client.complete makes URLs of them, once it is known
// whether there is TLS.
func setServer(c *Config, value string) error {
	if store.Names(value) {
		c.Client.Servers, c.Client.Server = []string{value}, value // one URL: it may have commas
		return nil
	}
	scheme, _, found := strings.Cut(strings.ToLower(strings.TrimSpace(value)), "://")
	if found && scheme != "http" && scheme != "https" && !strings.ContainsAny(scheme, ",:") {
		known := append([]string{"http", "https"}, store.Schemes()...)
		return fmt.Errorf("unknown scheme %q: this program knows %s; a host alone means http and port 4653",
			scheme, strings.Join(known, ", "))
	}
	c.Client.Servers = strings.Split(value, ",")
	probe := Client{Servers: c.Client.Servers}
	return probe.complete()
}

// complete makes URLs of the addresses of servers.
func (c *Client) complete() error {
	if len(c.Servers) == 1 && store.Names(c.Servers[0]) {
		return nil
	}
	var servers []string
	for _, given := range c.Servers {
		address, err := v1.ServerURL(given, c.TLS != certificate.Files{})
		if err != nil {
			return err
		}
		if slices.Contains(servers, address) {
			return fmt.Errorf("%s is listed twice", address)
		}
		servers = append(servers, address)
	}
	c.Servers, c.Server = servers, strings.Join(servers, ",")
	return nil
}

func setContext(c *Config, value string) error {
	c.Client.Context = value
	return nil
}

func setNamespace(c *Config, value string) error {
	c.Client.Namespace = value
	return named(value)
}

func setHolder(c *Config, value string) error {
	c.Client.Holder = value
	if value == "" {
		return nil
	}
	return named(value)
}

// named is as much of the rule for names as needs no server: its own answer says
// the rest.
func named(value string) error {
	if value == "" || len(value) > leasehold.MaxName {
		return fmt.Errorf("it has %d bytes: 1 to %d are allowed", len(value), leasehold.MaxName)
	}
	return nil
}

func oneOf(value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	last := len(allowed) - 1
	return fmt.Errorf("use %s or %s", strings.Join(allowed[:last], ", "), allowed[last])
}

// size reads a number of bytes as people write it, up to what anybody could mean.
func size(value string, least int64) (int64, error) {
	number, shift := value, 0
	for unit, by := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if n, ok := strings.CutSuffix(value, unit); ok {
			number, shift = n, by
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 40)
	if err != nil {
		return 0, errors.New("write it as 512KiB, 64MiB or 2GiB, or as a number of bytes")
	}
	if n > 1<<50>>shift || int64(n)<<shift < least {
		return 0, fmt.Errorf("%d bytes to 1048576GiB are allowed", least)
	}
	return int64(n) << shift, nil
}

// host checks an address to listen on and returns its first half.
func host(address string) (string, error) {
	h, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", errors.New("write it as host:port, such as 127.0.0.1:4653")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", errors.New("the port is a number from 0 (any that is free) to 65535")
	}
	return h, nil
}

// loopback reports whether only this machine can reach a host. A name that is not
// localhost could mean anything tomorrow, so it does not count.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
