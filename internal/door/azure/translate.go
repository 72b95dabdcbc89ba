package azure

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/core"
)

// A target is what a request is about: an account, a container or a blob, by how much of
// it is given.
type target struct {
	account   string
	container string
	blob      string
	snapshot  string // of the blob, as its time; empty: the blob itself
}

// Where things are kept. A blob's name may have any character, so what belongs to a blob
// besides its bytes is kept under roots of its own, with the name escaped where something
// follows it: no blob can be called like a part of another.
const (
	rootBytes     = "azure/"           // account/container (a container), account/container/blob (the bytes)
	rootBlobs     = "azure.blobs/"     // account/container/blob: the properties
	rootBlocks    = "azure.blocks/"    // account/container/blob?id: a block that is not part of the blob yet
	rootLists     = "azure.lists/"     // account/container/blob: the blocks that the blob is made of
	rootSnapshots = "azure.snapshots/" // account/container/blob?time: the properties of a snapshot
	rootPast      = "azure.past/"      // account/container/blob?time: its bytes
)

// maxLongest is the most bytes that the longest of these adds to the name of a blob.
const maxLongest = len(rootSnapshots) + 24 + 1 + 63 + 1 + 1 + 88

func (t target) containerPath() string { return azureaccount.ContainerPath(t.account, t.container) }

func (t target) of(root string) string { return root + t.account + "/" + t.container + "/" + t.blob }

// within is the prefix of everything of a kind that belongs to a container.
func (t target) within(root string) string { return root + t.account + "/" + t.container + "/" }

// part is the prefix of all parts of a blob of one kind.
func (t target) part(root string) string {
	return t.within(root) + strings.NewReplacer("%", "%25", "?", "%3F").Replace(t.blob) + "?"
}

func (t target) propertiesPath() string {
	if t.snapshot != "" {
		return t.part(rootSnapshots) + t.snapshot
	}
	return t.of(rootBlobs)
}

func (t target) bytesPath() string {
	if t.snapshot != "" {
		return t.part(rootPast) + t.snapshot
	}
	return t.of(rootBytes)
}

// resource is what is leased: a container and a blob are, as other doors see it, under
// the paths of their records.
func (t target) resource() string {
	if t.blob == "" {
		return t.containerPath()
	}
	return t.of(rootBytes)
}

// live is the target of a blob whose snapshot is meant.
func (t target) live() target {
	t.snapshot = ""
	return t
}

// validBlob refuses names that Azure refuses, and those that leave no room for what is
// kept beside a blob: about 800 bytes are left.
func validBlob(t target) bool {
	if t.blob == "" || len(t.blob) > 1024 || !utf8.ValidString(t.blob) || strings.ContainsRune(t.blob, 0) {
		return false
	}
	return maxLongest+len(t.part(""))-len(t.within("")) <= leasehold.MaxName
}

// timeOf writes a moment as Azure does in headers.
func timeOf(ns int64) string {
	return time.Unix(0, ns).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
}

// snapshotTime writes a moment as Azure names snapshots: with seven decimals.
func snapshotTime(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.0000000Z")
}

func validSnapshot(s string) bool {
	_, err := time.Parse("2006-01-02T15:04:05.0000000Z", s)
	return err == nil && len(s) == len("2006-01-02T15:04:05.0000000Z")
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// newGUID makes an id: of a lease for which the client proposed none, or of a request.
func newGUID() string {
	b := random(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return guidOf(b)
}

func guidOf(b []byte) string {
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// parseGUID reads a GUID in any of the formats that .NET knows (N, D, B, P and X) and
// returns it as everybody writes it; false if it is none.
func parseGUID(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) > 128 {
		return "", false
	}
	if strings.HasPrefix(strings.ToLower(s), "{0x") {
		return parseGUIDX(s)
	}
	if n := len(s); n == 38 && (s[0] == '{' && s[n-1] == '}' || s[0] == '(' && s[n-1] == ')') {
		s = s[1 : n-1]
	}
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return "", false
		}
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return "", false
	}
	return guidOf(b), true
}

// parseGUIDX reads {0x00000000,0x0000,0x0000,{0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00}}.
func parseGUIDX(s string) (string, bool) {
	inner, ok := strings.CutSuffix(strings.ReplaceAll(s, " ", "")[1:], "}}")
	head, tail, two := strings.Cut(inner, ",{")
	if !ok || !two {
		return "", false
	}
	var b []byte
	widths := []int{8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2}
	fields := append(strings.Split(head, ","), strings.Split(tail, ",")...)
	if len(fields) != len(widths) || len(strings.Split(head, ",")) != 3 {
		return "", false
	}
	for i, field := range fields {
		digits, found := strings.CutPrefix(strings.ToLower(field), "0x")
		if !found || digits == "" || len(digits) > widths[i] {
			return "", false
		}
		part, err := hex.DecodeString(strings.Repeat("0", widths[i]-len(digits)) + digits)
		if err != nil {
			return "", false
		}
		b = append(b, part...)
	}
	return guidOf(b), true
}

// infinite is the duration of a lease that does not end by time.
const infinite = -1

// ttlOf is the TTL of a lease in the core; 0 for one without end.
func ttlOf(seconds int) time.Duration {
	if seconds == infinite {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// secondsOf is the duration of a lease with a TTL in the core.
func secondsOf(ttl time.Duration) int {
	if ttl == 0 {
		return infinite
	}
	return int(ttl.Seconds())
}

// blockName is a block's id as a part of a path; false if it is none.
func blockName(id string) (string, bool) {
	raw, err := base64.StdEncoding.DecodeString(id)
	if err != nil || len(raw) == 0 || len(raw) > 64 {
		return "", false
	}
	return base64.RawURLEncoding.EncodeToString(raw), true
}

// blockID reads back what blockName wrote.
func blockID(name string) string {
	raw, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// Comparisons, as short as they are often written.
func unchanged(path string, mod leasehold.Revision) core.Compare {
	return core.Compare{What: core.RecordMod, Is: core.Equal, Path: path, Number: uint64(mod)}
}

func sameIncarnation(path string, create leasehold.Revision) core.Compare {
	return core.Compare{What: core.RecordCreate, Is: core.Equal, Path: path, Number: uint64(create)}
}

// leaseAsSeen holds while the lease on a resource is the one that was read, or still none.
func leaseAsSeen(resource, id string) core.Compare {
	return core.Compare{What: core.LeaseID, Is: core.Equal, Path: resource, Text: id}
}
