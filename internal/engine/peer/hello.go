package peer

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
)

// magic begins each connection, so that no other protocol is mistaken for this one, and no build from before the first
// release, whose commands had another format.
const magic = "LHPEER2\n"

// maxHello bounds what a stranger can make this server read.
const maxHello = 16 << 10

// An Identity says who a server is.
type Identity struct {
	Cluster string `json:"cluster,omitempty"` // empty: it belongs to none yet
	ID      uint64 `json:"id,omitempty"`      // 0: it has none yet
	Name    string `json:"name"`
	Dir     string `json:"dir,omitempty"`     // names its data directory
	Address string `json:"address,omitempty"` // where others reach it

	// The levels that its program knows; 0: it is of a version that had none.
	OldestLevel uint64 `json:"oldest_level,omitempty"`
	NewestLevel uint64 `json:"newest_level,omitempty"`
}

func (i Identity) String() string {
	if i.ID == 0 {
		return fmt.Sprintf("%q", i.Name)
	}
	return fmt.Sprintf("%q (id %d)", i.Name, i.ID)
}

// purposes of a connection.
const (
	forMessages = "messages"
	forUrgent   = "urgent" // messages that must not wait behind others; unknown to older versions
	forAsk      = "ask"
	forStream   = "stream"
)

// hello is the first frame of a connection.
type hello struct {
	Identity
	Purpose string `json:"purpose"`
	To      uint64 `json:"to,omitempty"` // who should be at the other end; 0: anybody
}

// A Reason is why a server is refused.
type Reason string

// The reasons. Some are final: a server that gets one should stop.
const (
	Removed      Reason = "removed"       // its membership was ended: final
	Replaced     Reason = "replaced"      // another data directory has its place: final
	OtherCluster Reason = "other-cluster" // it belongs to another cluster
	Stranger     Reason = "stranger"      // it is not known, or not yet
	WrongServer  Reason = "wrong-server"  // somebody else is at this address
	WrongName    Reason = "wrong-name"    // its certificate is not for its name
	NotReady     Reason = "not-ready"     // try again in a moment
	WrongLevel   Reason = "wrong-level"   // it does not know the rules by which the cluster decides
)

// A Refusal is why one server does not talk to another.
type Refusal struct {
	Reason  Reason   `json:"reason"`
	Message string   `json:"message"`
	By      Identity `json:"by"`
}

func (r *Refusal) Error() string { return r.Message }

// Final reports whether trying again will never help.
func (r *Refusal) Final() bool { return r.Reason == Removed || r.Reason == Replaced }

// refuse makes a refusal in words.
func refuse(reason Reason, format string, arguments ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

// greet says who this server is and hears who is at the other end. The error is a *Refusal if
// the other end refuses.
func greet(conn net.Conn, h hello, name string) (Identity, error) {
	body, err := json.Marshal(h)
	if err != nil {
		return Identity{}, err
	}
	if _, err := conn.Write(appendFrame([]byte(magic), kindHello, body)); err != nil {
		return Identity{}, err
	}
	kind, body, err := readFrame(conn, maxHello)
	if err != nil {
		return Identity{}, fmt.Errorf("it did not answer to our greeting: %w%s", unexpected(err),
			greetAdvice(conn, err))
	}
	other, err := readWelcome(kind, body)
	if err != nil {
		return Identity{}, believed(conn, err, name)
	}
	if name != "" && other.Name != name {
		return Identity{}, refuse(WrongServer, "server %s answers there, and not %q", other, name)
	}
	if err := certified(conn, other.Name); err != nil {
		return Identity{}, err
	}
	return other, nil
}

// believed returns why a greeting failed. A refusal can end this server for good, so it counts as said by nobody unless
// the other end proved the name by which it was called: any server of the authority can answer at an address.
func believed(conn net.Conn, err error, name string) error {
	var r *Refusal
	if !errors.As(err, &r) {
		return err
	}
	if wrong := certified(conn, r.By.Name); wrong != nil {
		return wrong
	}
	if name != "" && r.By.Name != name {
		r.By = Identity{}
	}
	return r
}

// greetAdvice returns what may be wrong where something listens and does not answer.
func greetAdvice(conn net.Conn, err error) string {
	_, secured := conn.(*tls.Conn)
	switch {
	case errors.Is(err, errDamaged):
		return ": is that the address for clients, and not the one for servers (--peer-listen)?"
	case errors.Is(unexpected(err), io.ErrUnexpectedEOF) && !secured:
		return ": has it certificates for servers, and this one none (--peer-cert, --peer-key, --peer-ca)?"
	}
	return ""
}

// readWelcome reads the answer to a greeting.
func readWelcome(kind byte, body []byte) (other Identity, err error) {
	switch kind {
	case kindWelcome:
		if err := json.Unmarshal(body, &other); err != nil {
			return Identity{}, errDamaged
		}
		return other, nil
	case kindRefusal:
		r := &Refusal{}
		if err := json.Unmarshal(body, r); err != nil {
			return Identity{}, errDamaged
		}
		return Identity{}, r
	}
	return Identity{}, errDamaged
}

// tlsHandshake is what a connection with TLS begins with.
const tlsHandshake = 0x16

// readHello reads a greeting.
func readHello(r io.Reader) (hello, error) {
	b := make([]byte, len(magic))
	if _, err := io.ReadFull(r, b); err != nil {
		return hello{}, err
	}
	if b[0] == tlsHandshake {
		return hello{}, errors.New("it has certificates for servers, and this one has none: give them to all " +
			"(--peer-cert, --peer-key, --peer-ca), or to none")
	}
	if string(b) != magic {
		return hello{}, errors.New("it speaks another protocol, or another version of ours")
	}
	kind, body, err := readFrame(r, maxHello)
	if err != nil {
		return hello{}, unexpected(err)
	}
	var h hello
	if err := json.Unmarshal(body, &h); kind != kindHello || err != nil {
		return hello{}, errDamaged
	}
	return h, nil
}

// answerHello says who we are, or why the other end is refused.
func answerHello(conn net.Conn, self Identity, refused *Refusal) error {
	if refused != nil {
		refused.By = self
		body, err := json.Marshal(refused)
		if err != nil {
			return err
		}
		return writeFrame(conn, kindRefusal, body)
	}
	body, err := json.Marshal(self)
	if err != nil {
		return err
	}
	return writeFrame(conn, kindWelcome, body)
}

// certified checks that the certificate at the other end is for the name by which that server
// calls itself: otherwise any server of the authority could pose as another. Without TLS there
// is none; such connections do not leave the machine.
func certified(conn net.Conn, name string) error {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	certificates := secured.ConnectionState().PeerCertificates
	if len(certificates) == 0 {
		return refuse(WrongName, "server %q showed no certificate", name)
	}
	if names := certificates[0].DNSNames; !slices.Contains(names, name) &&
		!slices.Contains(names, name+CertificateDomain) {
		return refuse(WrongName, "the certificate of server %q is for %q: make one that has its name", name, names)
	}
	return nil
}
