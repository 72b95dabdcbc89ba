package azureaccount

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *Book {
	t.Helper()
	b, err := Open(filepath.Join(dir, "accounts"), filepath.Join(dir, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestKeysAreSealed(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	made, err := b.Create("prod", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "accounts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range made.Keys {
		if len(key) != keyBytes || bytes.Contains(text, key) ||
			strings.Contains(string(text), base64.StdEncoding.EncodeToString(key)) {
			t.Error("a key stands in the file as it is")
		}
	}
	for _, name := range []string{"accounts", "secret"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	again := open(t, dir)
	if got := again.Keys("prod"); len(got) != 2 || !bytes.Equal(got[0], made.Keys[0]) ||
		!bytes.Equal(got[1], made.Keys[1]) {
		t.Error("the keys are others after a restart")
	}
	if !bytes.Equal(again.TokenKey(), b.TokenKey()) || bytes.Contains(b.TokenKey(), b.secret) {
		t.Error("the key of tokens is not that of the secret, or the secret itself")
	}
}

func TestSealedKeyStaysWhereItIs(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	for _, name := range []string{"one", "two"} {
		if _, err := b.Create(name, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "accounts")
	text, _ := os.ReadFile(path)
	swapped := strings.NewReplacer(`"one"`, `"two"`, `"two"`, `"one"`).Replace(string(text))
	if err := os.WriteFile(path, []byte(swapped), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, filepath.Join(dir, "secret")); err == nil ||
		!strings.Contains(err.Error(), "cannot be decrypted") {
		t.Errorf("keys were moved to another account: %v", err)
	}
}

func TestAnotherSecret(t *testing.T) {
	dir := t.TempDir()
	if _, err := open(t, dir).Create("prod", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "accounts"), filepath.Join(dir, "other")); err == nil ||
		!strings.Contains(err.Error(), "it was encrypted with another secret") {
		t.Errorf("got %v", err)
	}
	for content, want := range map[string]string{"": "is damaged", "abc": "is damaged",
		base64.StdEncoding.EncodeToString(make([]byte, 31)): "is damaged"} {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(filepath.Join(dir, "accounts"), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// A server sees what a command changed, and keeps what it had while the file is damaged.
func TestFileIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	server, command := open(t, dir), open(t, dir)
	if _, err := command.Create("prod", time.Now()); err != nil {
		t.Fatal(err)
	}
	look := func() { // at once, and not in a second
		server.mu.Lock()
		server.looked = time.Time{}
		server.mu.Unlock()
	}
	look()
	if len(server.Keys("prod")) != 2 {
		t.Fatal("a new account is not seen")
	}
	path := filepath.Join(dir, "accounts")
	whole, _ := os.ReadFile(path)
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	look()
	if len(server.Keys("prod")) != 2 || server.Failure() == nil {
		t.Error("a damaged file takes accounts away, or is not told")
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	look()
	if server.Failure() != nil {
		t.Errorf("a whole file again: %v", server.Failure())
	}
	old := server.Keys("prod")[1]
	if _, err := command.Rotate("prod", 2, time.Now()); err != nil {
		t.Fatal(err)
	}
	look()
	if bytes.Equal(server.Keys("prod")[1], old) {
		t.Error("a new key is not seen")
	}
	if err := command.Remove("prod"); err != nil {
		t.Fatal(err)
	}
	look()
	if server.Keys("prod") != nil {
		t.Error("a removed account is still there")
	}
}
