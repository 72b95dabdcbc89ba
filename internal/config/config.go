// Package config is every setting that Leasehold has, in one table: keys.go. A
// setting has one name, which is its flag, its key in the YAML file and, in
// capitals behind LEASEHOLD_, its variable; the strongest of the three is used,
// in that order, and the default if there is none.
//
// A setting that is written down and then ignored is worse than one that is
// refused. Unknown keys and variables are therefore errors, and so is a wrong
// value, even one that a stronger source overrules.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/store"
)

// A Config is all settings, parsed. Only the part that was asked for is filled.
type Config struct {
	File   string // the YAML file, if there is one
	Server Server
	Client Client
}

// Server is what one server needs to know.
type Server struct {
	Listen        string
	Data          string
	DrainLinger   time.Duration
	DrainTimeout  time.Duration
	MinFree       uint64         // bytes
	SegmentSize   int64          // bytes
	SnapshotEvery int64          // bytes
	JournalSize   int64          // bytes; 0: no journal
	Caps          leasehold.Caps // of a cluster in which nobody set any
	PprofListen   string         // empty: off
	HostNames     []string
	LogLevel      slog.Level
	LogFormat     string // "text" or "json"
	Insecure      bool
	Access        bool   // there are to be rules who may do what
	AccessFile    string // that declares them; empty: none does

	Name      string
	Advertise string            // the URL that other servers tell clients; empty: made from Listen
	TLS       certificate.Files // of the client port; without Cert it is plain

	PeerListen     string            // where other servers reach this one; empty: none do
	PeerAdvertise  string            // where it says that they do
	PeerTLS        certificate.Files // all of them, or none
	InitialCluster []Member          // of a cluster that begins
	Join           []string          // servers of a cluster to ask to be taken in

	Doors map[string]string // the settings that doors add, by name
}

// A Member is one server of a cluster that begins.
type Member struct{ Name, Peer string }

// Client is what a command needs to know that talks to a server.
type Client struct {
	Server    string   // URLs without a slash at their ends, with commas between several
	Servers   []string // the same, one by one
	TLS       certificate.Files
	Namespace string
	Holder    string // empty: whoever runs the command

	Context   string // empty: none
	TokenFile string
	Insecure  bool         // a token is sent also without TLS
	Token     v1.TokenFunc // proves who asks; nil: nothing does. The command line sets it

	// TokenVariable is the variable that Token is of, empty if it is of none.
	TokenVariable string
	// LoginFlags are those with which the person logged in at an issuer, if Token is of that login.
	LoginFlags []string
}

// Sources is where settings come from.
type Sources struct {
	Flags   map[string]string // those that were given, by name
	Environ []string          // as os.Environ returns it
	Doors   []Door            // which settings there are beside those of every server

	// Context are the settings of the person's context, which commands use that talk to a server.
	Context     map[string]string
	ContextName string
}

// A Setting is one key with its value and where that came from.
type Setting struct {
	Key    Key
	Value  string
	Origin string // "default", "flag --listen", "LEASEHOLD_LISTEN", "leasehold.yaml:3"
}

// ForServer settles what a server uses. The error, if any, has a line for each
// thing that is wrong.
func ForServer(src Sources) (Config, []Setting, error) {
	var c Config
	env, err := environ(src.Environ, src.Doors)
	r := resolver{config: &c, layers: []layer{flagLayer(src.Flags), env}, problems: []error{err}}
	r.settle(pick(src.Doors, ofFile))
	if c.File != "" {
		text, err := readFile(c.File)
		if err != nil {
			return c, nil, errors.Join(append(r.problems, err)...)
		}
		file, err := fileLayer(c.File, text, src.Doors)
		r.layers, r.problems = append(r.layers, file), append(r.problems, err)
	}
	r.settle(pick(src.Doors, OfServer))
	c.Server.Access = c.Server.Access || c.Server.AccessFile != ""
	r.problems = append(r.problems, c.Server.checkTLS(), c.Server.exposed(), c.Server.checkPeers(),
		r.twoBeginnings(&c.Server))
	r.problems = append(r.problems, c.Server.checkDoors(src.Doors)...)
	return c, r.settings, errors.Join(r.problems...)
}

// ForClient settles what a command uses that talks to a server. It reads no file.
func ForClient(src Sources) (Config, []Setting, error) {
	var c Config
	env, err := environ(src.Environ, src.Doors)
	named := layer{}
	for name, value := range src.Context {
		named[name] = given{value, contextOrigin + src.ContextName}
	}
	r := resolver{config: &c, layers: []layer{flagLayer(src.Flags), env, named}, problems: []error{err}}
	r.settle(pick(src.Doors, OfClient))
	if err := c.Client.complete(); err == nil { // else it was reported
		r.problems = append(r.problems, c.Client.checkTLS())
	}
	return c, r.settings, errors.Join(r.problems...)
}

// contextOrigin begins the origin of what a context says.
const contextOrigin = "context "

// OfContext reports whether a context said it.
func (s Setting) OfContext() bool { return strings.HasPrefix(s.Origin, contextOrigin) }

// OfFlag reports whether a flag said it.
func (s Setting) OfFlag() bool { return strings.HasPrefix(s.Origin, "flag ") }

// ContextNamed returns the context that a flag or a variable names; empty: none does.
func (s Sources) ContextNamed() string {
	if name, ok := s.Flags["context"]; ok {
		return name
	}
	for _, entry := range s.Environ {
		if name, ok := strings.CutPrefix(entry, EnvName("context")+"="); ok {
			return name
		}
	}
	return ""
}

// A layer is what one source says, by name of key.
type layer map[string]given

type given struct{ value, origin string }

type resolver struct {
	config   *Config
	layers   []layer // strongest first
	settings []Setting
	problems []error
}

// settle stores the strongest value of each key, and tries every other one too.
func (r *resolver) settle(keys []Key) {
	for _, key := range keys {
		chosen := given{key.Default, "default"}
		for i := len(r.layers) - 1; i >= 0; i-- {
			value, ok := r.layers[i][key.Name]
			if !ok {
				continue
			}
			chosen = value
			if err := key.set(new(Config), value.value); err != nil {
				r.problems = append(r.problems, fmt.Errorf("%s: %s is %q: %w", value.origin, key.Name,
					shown(key, value.value), err))
			}
		}
		// A wrong value has been reported; the rest goes on to be looked at.
		_ = key.set(r.config, chosen.value)
		r.settings = append(r.settings, Setting{key, chosen.value, chosen.origin})
	}
}

// shown returns a value for a message, without passwords.
func shown(key Key, value string) string {
	if key.Name == "server" {
		return store.Redact(value)
	}
	return value
}

func flagLayer(flags map[string]string) layer {
	l := layer{}
	for name, value := range flags {
		l[name] = given{value, "flag --" + name}
	}
	return l
}

// maxFile is far more than all keys need; the file may be a mistake such as a log.
const maxFile = 1 << 20

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("configuration file %s does not exist: create it, or leave --config and %s out",
			path, EnvName("config"))
	case err != nil:
		return nil, fmt.Errorf("configuration file %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("configuration file %s is a directory: name the file in it", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("configuration file %s has %d bytes: at most %d are allowed", path, info.Size(), maxFile)
	}
	return os.ReadFile(path)
}
