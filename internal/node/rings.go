package node

import (
	"crypto/tls"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/metric"
)

// soon is when somebody should think of the next certificate.
const soon = 30 * 24 * time.Hour

// clientRing has the certificates of the client port; nil: it is plain.
func (s *server) clientRing() (*certificate.Keyring, error) {
	if s.TLS.Cert == "" {
		return nil, nil
	}
	return s.openRing(s.TLS, "clients")
}

// listenTLS is how clients are talked to; nil: in plain.
func listenTLS(ring *certificate.Keyring) *tls.Config {
	if ring == nil {
		return nil
	}
	return ring.Listen()
}

// openRing reads certificates, and says when changed ones cannot be used.
func (s *server) openRing(files certificate.Files, of string) (*certificate.Keyring, error) {
	ring, err := certificate.Open(files, func(err error) {
		s.log.Error("the new certificates cannot be used: the old ones stay", "for", of, "err", err)
	})
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	ends := func() float64 { return float64(ring.Ends().Unix()) }
	s.metrics.Registerer().MustRegister(metric.CertificateEnds.GaugeFunc(ends, of))
	s.rings = append(s.rings, named{ring, of})
	switch left := time.Until(ring.Ends()); {
	case left <= 0:
		s.log.Error("the certificate has ended, and nobody trusts it: make another one with leasehold cert",
			"for", of, "file", files.Cert, "ended", ring.Ends().UTC())
	case left < soon:
		s.log.Warn("the certificate ends soon: make another one with leasehold cert",
			"for", of, "file", files.Cert, "left", left.Round(time.Minute))
	}
	return ring, nil
}

// A named ring knows whom it is for.
type named struct {
	*certificate.Keyring
	of string
}

// urgent is when the end of a certificate is a warning of a server that works.
const urgent = 7 * 24 * time.Hour

// endingCertificates returns a warning for each certificate that ends soon, or has ended.
func (s *server) endingCertificates() (all []string) {
	for _, ring := range s.rings {
		switch left := time.Until(ring.Ends()); {
		case left <= 0:
			all = append(all, "the certificate for "+ring.of+" has ended: make another one with leasehold cert")
		case left < urgent:
			all = append(all, "the certificate for "+ring.of+" ends within 7 days: make another one with "+
				"leasehold cert")
		}
	}
	return all
}
