package azureblob

import (
	"strings"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
)

// A Place is an account, a container or a blob, by how much of it is given.
type Place struct {
	Account   string
	Container string
	Blob      string
	Snapshot  string // of the blob, as its time; empty: the blob itself
}

// Where things are kept. A blob's name may have any character, so what belongs to a blob
// besides its bytes is kept under roots of its own, with the name escaped where something
// follows it: no blob can be called like a part of another.
const (
	RootBytes     = "azure/"           // account/container (a container), account/container/blob (the bytes)
	RootBlobs     = "azure.blobs/"     // account/container/blob: the properties
	RootBlocks    = "azure.blocks/"    // account/container/blob?id: a block that is not part of the blob yet
	RootLists     = "azure.lists/"     // account/container/blob: the blocks that the blob is made of
	RootSnapshots = "azure.snapshots/" // account/container/blob?time: the properties of a snapshot
	RootPast      = "azure.past/"      // account/container/blob?time: its bytes
)

// Roots are all of them, in the order in which a container is cleared: a blob is gone first.
var Roots = []string{RootBlobs, RootBytes, RootBlocks, RootLists, RootSnapshots, RootPast}

// maxLongest is the most bytes that the longest of these adds to the name of a blob.
const maxLongest = len(RootSnapshots) + 24 + 1 + 63 + 1 + 1 + 88

// ContainerPath is where the properties of the container are.
func (p Place) ContainerPath() string { return azureaccount.ContainerPath(p.Account, p.Container) }

// Of is the path of what the blob has one of, below its root.
func (p Place) Of(root string) string { return root + p.Account + "/" + p.Container + "/" + p.Blob }

// Within is the prefix of everything of a kind that belongs to a container.
func (p Place) Within(root string) string { return root + p.Account + "/" + p.Container + "/" }

// Part is the prefix of all parts of a blob of one kind.
func (p Place) Part(root string) string {
	return p.Within(root) + strings.NewReplacer("%", "%25", "?", "%3F").Replace(p.Blob) + "?"
}

// PropertiesPath is where the properties of the blob or snapshot are.
func (p Place) PropertiesPath() string {
	if p.Snapshot != "" {
		return p.Part(RootSnapshots) + p.Snapshot
	}
	return p.Of(RootBlobs)
}

// BytesPath is where its bytes are.
func (p Place) BytesPath() string {
	if p.Snapshot != "" {
		return p.Part(RootPast) + p.Snapshot
	}
	return p.Of(RootBytes)
}

// Resource is what is leased: a container and a blob are, as other doors see it, under
// the paths of their records.
func (p Place) Resource() string {
	if p.Blob == "" {
		return p.ContainerPath()
	}
	return p.Of(RootBytes)
}

// Live is the blob of which a snapshot is meant.
func (p Place) Live() Place {
	p.Snapshot = ""
	return p
}

// ValidBlob refuses names that Azure refuses, and those that leave no room for what is
// kept beside a blob: about 800 bytes are left.
func (p Place) ValidBlob() bool {
	if p.Blob == "" || len(p.Blob) > 1024 || !utf8.ValidString(p.Blob) || strings.ContainsRune(p.Blob, 0) {
		return false
	}
	return maxLongest+len(p.Part(""))-len(p.Within("")) <= leasehold.MaxName
}
