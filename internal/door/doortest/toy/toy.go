// Package toy is a door that echoes leases over a protocol of lines. It is for tests: it shows
// what a new door costs, which is a folder like this and a line in the table of package node.
//
//	LEASE reports/nightly worker-7 30s
//	granted reports/nightly worker-7 1
//
// On the port that doors share it is told by its first bytes; with toy-listen set it has a port
// of its own.
package toy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/telemetry"
)

const doorName = "toy"

// Kind is this door in the table of a server.
var Kind = door.Kind{
	Name: doorName,
	Settings: []door.Setting{{Name: "toy-listen", Check: door.CheckAddress,
		Help: "address for toys; empty: the one of --listen"}},
	Open: open,
}

const verb = "LEASE "

func open(b *door.Backend, s door.Settings) (door.Door, error) {
	d := &toy{b, b.Requests(doorName).Verb("lease")}
	protocol := &door.Protocol{Name: doorName, Serve: d.serve, Refuse: refuse}
	if address := s["toy-listen"]; address != "" {
		return door.Door{Port: &door.Port{Name: doorName, Setting: "toy-listen", Address: address,
			Protocol: protocol}}, nil
	}
	protocol.First = len(verb)
	protocol.Matches = func(first []byte) bool { return bytes.HasPrefix(first, []byte(verb)) }
	return door.Door{Protocol: protocol}, nil
}

type toy struct {
	backend *door.Backend
	account *telemetry.Verb
}

// refuse says "not now" in a line.
func refuse(c net.Conn, err error) { _, _ = fmt.Fprintf(c, "refused %v\n", err) }

// lineTime is how long a client may take for a line, and for taking the answer.
const lineTime = 10 * time.Second

// serve answers lines until the client leaves, or the server drains.
func (d *toy) serve(ctx context.Context, c net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) })()
	lines := bufio.NewScanner(c)
	for ctx.Err() == nil {
		_ = c.SetDeadline(time.Now().Add(lineTime))
		if !lines.Scan() {
			return
		}
		door.Greeted(c)
		began := time.Now()
		said, err := d.lease(c, lines.Text())
		d.account.Done(ctx, telemetry.Outcome{Namespace: leasehold.DefaultNamespace, Err: err, Took: time.Since(began)})
		if err != nil {
			said = "refused " + err.Error()
		} else {
			door.Proven(c)
		}
		if _, err := fmt.Fprintln(c, said); err != nil {
			return
		}
	}
}

// lease carries out one line.
func (d *toy) lease(c net.Conn, line string) (string, error) {
	words := strings.Fields(line)
	if len(words) != 4 || words[0]+" " != verb {
		return "", door.Invalid("write %sRESOURCE HOLDER TTL", verb)
	}
	ttl, err := time.ParseDuration(words[3])
	if err != nil {
		return "", door.Invalid("%s is no time such as 30s", door.Brief(words[3]))
	}
	// What was begun is finished, also while the server drains.
	ctx := door.WithCaller(context.Background(), door.Caller{
		Origin: leasehold.Origin{Address: c.RemoteAddr().String(), Door: doorName},
	})
	answer, err := d.backend.Do(ctx, &core.Acquire{
		Namespace: leasehold.DefaultNamespace, Resource: words[1], Holder: words[2], ID: words[2] + "@" + words[1],
		TTL: ttl,
	})
	if errors.Is(err, leasehold.ErrHeld) {
		return "held " + words[1], nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("granted %s %s %d", answer.Lease.Resource, answer.Lease.Holder, answer.Lease.Token), nil
}
