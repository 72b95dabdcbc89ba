package native

import (
	"crypto/tls"
	"log/slog"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// Times of the port that tests wait for.
const (
	headerTime   = 5 * time.Second
	idleTime     = 2 * time.Minute
	turnAwayTime = time.Second
	maxTurnAway  = 64
)

// Config is what tests vary of the door, its backend and its port.
type Config struct {
	Version        v1.Version
	Metrics        *telemetry.Metrics
	Log            *slog.Logger
	TLS            *tls.Config
	Hosts          *listen.Hosts
	Gates          *listen.Gates
	MaxConnections int
	MaxStreams     int
	Linger         time.Duration
	DrainTimeout   time.Duration
}

// opened is a door with its port.
type opened struct {
	*Door
	*door.Host
}

// open opens a door to an engine; nil: a server that is starting.
func open(e engine.Engine, c Config, others ...door.Door) *opened {
	options := door.Options{Version: c.Version, Metrics: c.Metrics, Log: c.Log, MaxStay: c.MaxStreams}
	b := door.NewStarting(options)
	if e != nil {
		b = door.NewBackend(e, options)
	}
	d := New(b)
	port := door.HostConfig{
		TLS: c.TLS, Hosts: c.Hosts, Gates: c.Gates, MaxConnections: c.MaxConnections, Linger: c.Linger, DrainTimeout: c.DrainTimeout,
	}
	return &opened{d, door.NewHost(b, port, append([]door.Door{d.Door()}, others...)...)}
}
