package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Scope says whom a setting is for.
type Scope uint8

// The scopes. What is of the server can stand in the file.
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
	return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

const prefix = "LEASEHOLD_"

// Keys is the table, in the order in which people are shown it.
func Keys() []Key {
	return append([]Key{
		{Name: "listen", Scope: OfServer, Default: "127.0.0.1:4653",
			Help: "address to serve on; one that other machines can reach needs --insecure", set: setListen},
		{Name: "data", Scope: OfServer, Default: "leasehold-data",
			Help: "directory that keeps everything; made if it is not there", set: setData},
		{Name: "drain-timeout", Scope: OfServer, Default: "10s",
			Help: "how long a server that was told to stop finishes what is under way", set: setDrainTimeout},
		{Name: "min-free", Scope: OfServer, Default: "256MiB",
			Help: "grant nothing new while the disk has less room than this; renewals and releases go on", set: setMinFree},
		{Name: "segment-size", Scope: OfServer, Default: "64MiB",
			Help: "size of one file of the log", set: setSegmentSize},
		{Name: "snapshot-every", Scope: OfServer, Default: "64MiB",
			Help: "bytes of log between two snapshots; fewer make a restart faster", set: setSnapshotEvery},
		{Name: "journal-size", Scope: OfServer, Default: "256MiB",
			Help: "room for the journal of what was done and who held what, the newest of it; 0: none", set: setJournalSize},
		{Name: "pprof-listen", Scope: OfServer,
			Help: "loopback address for profiles (/debug/pprof); empty: none", set: setPprof},
		{Name: "log-level", Scope: OfServer, Default: "info", Values: []string{"debug", "info", "warn", "error"},
			Help: "least important lines to log", set: setLogLevel},
		{Name: "log-format", Scope: OfServer, Default: "text", Values: []string{"text", "json"},
			Help: "how log lines look", set: setLogFormat},
		{Name: "insecure", Scope: OfServer, Default: "false", Switch: true,
			Help: "let everybody who can reach the address use the server", set: setInsecure},
		{Name: "config", Scope: ofFile,
			Help: "YAML file with settings of the server", set: setFile},
		{Name: "server", Scope: OfClient, Default: v1.DefaultServer,
			Help: "URL of the server to talk to", set: setServer},
		{Name: "namespace", Scope: OfClient, Default: leasehold.DefaultNamespace,
			Help: "namespace that names are looked up in", set: setNamespace},
		{Name: "holder", Scope: OfClient,
			Help: "who you are, as others will see it; empty: user@host:pid", set: setHolder},
	}, azureKeys()...)
}

// pick returns the keys of some scopes.
func pick(scopes ...Scope) (keys []Key) {
	for _, key := range Keys() {
		if slices.Contains(scopes, key.Scope) {
			keys = append(keys, key)
		}
	}
	return keys
}

// ServerKeys are those that serve takes, the file's own included.
func ServerKeys() []Key { return pick(OfServer, ofFile) }

// ClientKeys are those of commands that talk to a server.
func ClientKeys() []Key { return pick(OfClient) }

// Lookup returns the key of a name.
func Lookup(name string) (Key, bool) {
	keys := Keys()
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

func setDrainTimeout(c *Config, value string) (err error) {
	c.Server.DrainTimeout, err = v1.ParseDuration(value)
	if err == nil && c.Server.DrainTimeout < 0 {
		return errors.New("it can't be less than 0s")
	}
	return err
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

func setInsecure(c *Config, value string) (err error) {
	if c.Server.Insecure, err = strconv.ParseBool(value); err != nil {
		return errors.New("use true or false")
	}
	return nil
}

func setFile(c *Config, value string) error {
	c.File = value
	return nil
}

func setServer(c *Config, value string) error {
	address := value
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return errors.New("write it as http://host:port")
	case u.RawQuery != "", u.Fragment != "":
		return errors.New("leave out what follows the path")
	case u.User != nil:
		return errors.New("leave out the user and password: they would be shown in every process list")
	}
	c.Client.Server = strings.TrimRight(u.String(), "/")
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

// loopback tells whether only this machine can reach a host. A name that is not
// localhost could mean anything tomorrow, so it does not count.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// exposed refuses to let strangers in by accident.
func (s Server) exposed() error {
	h, err := host(s.Listen)
	if err != nil || loopback(h) || s.Insecure {
		return nil
	}
	return fmt.Errorf("listen is %q: other machines can reach that address, and anybody there could end every lease: "+
		"listen on 127.0.0.1, or give --insecure if you trust everybody who can reach it", s.Listen)
}
