// Package azure is the door for programs that speak Azure Blob Storage: the azurerm
// backend of Terraform and OpenTofu, the Azure SDKs, and az. It keeps containers and
// block blobs as records, and their leases as leases of the core, so that a blob's lease
// is broken, watched and audited like any other.
//
// A request goes through the files in one direction. door.go finds what is asked of
// what, authorize.go who asks, sas.go and token.go for two of the ways to prove it.
// translate.go makes our words of Azure's, and the files named after things (lease.go,
// blob.go, blocks.go, container.go, list.go) decide by what they read, and then do one
// command which compares that nothing of it has changed meanwhile. errors.go writes a
// refusal as Azure does, and conn.go sees to it that its first line says why.
//
// Foreign words (container, blob, snapshot, GUID) live here and nowhere else.
package azure
