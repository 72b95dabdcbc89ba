package azure

import (
	"net/http"
	"testing"

	"github.com/leasehold/leasehold/internal/peer"
)

// startAzurite starts Microsoft's emulator of Azure Blob Storage, or leaves the test out.
func startAzurite(t *testing.T) *store {
	t.Helper()
	emulator := peer.StartAzurite(t)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return newStore(t, "azurite", emulator.URL(), emulator.Key, client)
}
