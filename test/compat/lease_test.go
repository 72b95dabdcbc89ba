package compat

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// leaseFor leases a blob without end, under an id.
func leaseFor(t *testing.T, b *blob.Client, id string) {
	t.Helper()
	l, err := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: to.Ptr(id)})
	check(t, err)
	_, err = l.AcquireLease(t.Context(), -1, nil)
	check(t, err)
}
