package leasehold_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/leasehold/leasehold"
)

func TestDigestReadsItself(t *testing.T) {
	d := leasehold.Digest(sha256.Sum256([]byte("a value")))
	if want := hex.EncodeToString(d[:]); d.String() != want {
		t.Fatalf("%v, want %s", d, want)
	}
	if again, ok := leasehold.ParseDigest(d.String()); !ok || again != d {
		t.Fatalf("%v is read as %v", d, again)
	}
	for _, wrong := range []string{"", "ab", d.String() + "0", d.String()[:63] + "g", d.String()[:62] + "AB"} {
		if _, ok := leasehold.ParseDigest(wrong); ok {
			t.Errorf("%q was read", wrong)
		}
	}
}
