package azure

import (
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// azuriteMain is where make deps puts Microsoft's emulator of Azure Blob Storage.
var azuriteMain = filepath.Join("..", "..", "..", "bin", "azurite", "node_modules", "azurite", "dist", "src", "blob", "main.js")

// startAzurite starts the emulator, or leaves the test out.
func startAzurite(t *testing.T) *store {
	t.Helper()
	main := azuriteMain
	if set := os.Getenv("AZURITE"); set != "" {
		main = set
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("left out: node is not installed here, which azurite needs")
	}
	if _, err := os.Stat(main); err != nil {
		t.Skip("left out: azurite is not installed here: make deps")
	}
	main, err = filepath.Abs(main) // it starts in a directory of its own
	check(t, err)
	key := base64.StdEncoding.EncodeToString(make([]byte, 64))
	cmd := exec.Command(node, main, "--blobPort", "0", "--blobHost", "127.0.0.1", "--inMemoryPersistence", "--skipApiVersionCheck")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+accountName+":"+key)
	said := &lines{seen: make(chan struct{}, 1)}
	cmd.Stdout, cmd.Stderr = said, said
	check(t, cmd.Start())
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
	})
	listens := regexp.MustCompile(`successfully listens on (http://\S+)`)
	for deadline := time.After(2 * patience); ; {
		if m := listens.FindStringSubmatch(strings.Join(said.all(), "\n")); m != nil {
			client := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(client.CloseIdleConnections)
			return newStore(t, "azurite", m[1]+"/"+accountName, key, client)
		}
		select {
		case <-said.seen:
		case <-exited:
			t.Skip("left out: azurite does not run here: " + strings.Join(said.all(), "\n"))
		case <-deadline:
			t.Skip("left out: azurite did not start in time")
		}
	}
}
