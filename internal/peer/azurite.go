//go:build linux

package peer

import (
	"encoding/base64"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/test/process"
)

// azuriteMain is what node runs, below a directory "azurite".
var azuriteMain = filepath.Join("azurite", "node_modules", "azurite", "dist", "src", "blob", "main.js")

// An Azurite is Microsoft's emulator of Azure Blob Storage. It writes its data every few seconds
// and when it is stopped, so [Server.Kill] loses what was done last, as Azure never would.
type Azurite struct {
	Server
	Account, Key string
}

// StartAzurite starts an emulator with one account. AZURITE may name its main.js.
func StartAzurite(t testing.TB) *Azurite {
	t.Helper()
	a := &Azurite{Account: "leasehold", Key: base64.StdEncoding.EncodeToString(make([]byte, 64))}
	main := os.Getenv("AZURITE")
	if main == "" {
		main = built(azuriteMain)
	}
	if main == "" {
		main = above(filepath.Join("bin", azuriteMain))
	}
	if main == "" {
		t.Skip("left out: azurite is not installed here (make deps)")
	}
	a.Server = Server{Address: process.Reserve(t), name: "azurite", dir: t.TempDir(), ready: a.listens}
	host, port, _ := net.SplitHostPort(a.Address)
	a.env = []string{"AZURITE_ACCOUNTS=" + a.Account + ":" + a.Key}
	a.run = []string{
		find(t, "node", "make deps"), main, "--blobHost", host, "--blobPort", port, "--location", a.dir,
		"--skipApiVersionCheck", "--disableTelemetry",
	}
	a.start(t)
	return a
}

// URL returns what clients of the account connect to.
func (a *Azurite) URL() string { return "http://" + a.Address + "/" + a.Account }
