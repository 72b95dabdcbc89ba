// Package azblob keeps leases in Azure Blob Storage, as leases of blobs. A program that imports it can
// give the client an address such as azblob://account:key@account.blob.core.windows.net/container.
//
// # What is promised
//
// There is a blob for each resource, and Azure leases it to one at a time, for 15 to 60 seconds. Azure judges
// the time. A lease that Azure gave is not believed in yet: its holder reads the last token, writes a
// larger one into the blob's metadata, under its lease and only if nothing else was written, and then
// it holds the resource. So tokens grow for each resource, and a lease whose time was over in between
// gets none. Waiters have to ask again and again, in no order.
//
// The first token is the second in which the blob was written, times a million. If somebody deletes a blob,
// or writes over it, the next one begins above all that were granted: a grant waits until that second has
// passed.
//
// Azure renews a lease that has expired, unless somebody had it since. Here it is released then, and its
// holder is told that it has ended.
//
// # What is written
//
//	PREFIX/NAMESPACE/l/RESOURCE  a blob for each resource. Its metadata are the token and the id of the last
//	                             grant, and its content is a note in JSON. It stays when it is free
//	PREFIX/NAMESPACE/m/HASH      a mark: an id was broken or withdrawn, and cannot be used
//
// Marks are cleaned after 15 minutes, whenever others are written.
package azblob
