package azureblob

import (
	"encoding/json"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// What every write of a blob has in common, whichever door it comes by: bytes and properties change in one
// transaction, if container, blob and lease are still as they were read.

// An Item is a container or a blob as it was read.
type Item struct {
	Properties
	Found  bool
	Mod    leasehold.Revision
	Create leasehold.Revision
}

// Look reads the properties of a container or a blob. One that is being deleted is not found.
func Look(v core.View, namespace, path string) (i Item) {
	r, failure := v.Record(namespace, path, 0)
	if failure != nil || json.Unmarshal([]byte(r.Value), &i.Properties) != nil {
		return Item{}
	}
	i.Found, i.Mod, i.Create = !i.Deleting, r.Mod, r.Create
	return i
}

// AsRead compares that container, blob and lease are still as they were read; lease is the core's id,
// empty if nobody held the blob.
func (p Place) AsRead(container, blob leasehold.Revision, lease string) []core.Compare {
	return []core.Compare{
		Unchanged(p.ContainerPath(), container),
		Unchanged(p.PropertiesPath(), blob),
		LeaseAsSeen(p.Resource(), lease),
	}
}

// Unchanged compares that a record is as it was read; 0: that there is none.
func Unchanged(path string, mod leasehold.Revision) core.Compare {
	return core.Compare{What: core.RecordMod, Is: core.Equal, Path: path, Number: uint64(mod)}
}

// LeaseAsSeen holds while the lease on a resource is the one that was read, or still none.
func LeaseAsSeen(resource, id string) core.Compare {
	return core.Compare{What: core.LeaseID, Is: core.Equal, Path: resource, Text: id}
}

// Replace writes all bytes of a blob, and drops its blocks, committed or not, as Azure does. The put says
// what the bytes are.
func (p Place) Replace(put core.Op) []core.Op {
	put.Do, put.Path = core.Put, p.BytesPath()
	return []core.Op{put, {Do: core.Delete, Path: p.Of(RootLists)}, DeleteAll(p.Part(RootBlocks))}
}

// Put writes the properties of a blob.
func (p Place) Put(properties *Properties) core.Op {
	return core.Op{Do: core.Put, Path: p.PropertiesPath(), Value: properties.Encode()}
}

// DeleteAll deletes everything below a prefix.
func DeleteAll(prefix string) core.Op {
	return core.Op{Do: core.Delete, Path: prefix, Range: true, To: core.PrefixEnd(prefix)}
}

// Renew sets the properties of a blob whose bytes are replaced.
func (p *Properties) Renew(shown *Properties, metadata map[string]string) {
	if p.Created == 0 {
		p.Created = p.Modified
	}
	p.Show(shown)
	p.Metadata, p.Copy, p.Blocks = metadata, nil, 0
}

// Show takes over the headers with which a blob's bytes are served.
func (p *Properties) Show(as *Properties) {
	p.Type, p.Encoding, p.Language = as.Type, as.Encoding, as.Language
	p.Disposition, p.Cache, p.MD5 = as.Disposition, as.Cache, as.MD5
}
