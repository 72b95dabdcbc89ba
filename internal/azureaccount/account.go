// Package azureaccount keeps the accounts of the Azure door: names and, for each, two keys,
// in a file of its own. Keys are not in the log: a backup must not let anybody
// sign with them. In the file they are encrypted with a secret that is in
// another file, so that neither of the two alone is enough.
//
// Every server of a cluster needs a copy of both files.
package azureaccount

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// KeyCount is how many keys an account has: one to use, and one to change to.
const KeyCount = 2

const (
	keyBytes    = 64 // as Azure's
	secretBytes = 32
	maxFile     = 4 << 20
)

var nameForm = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

// reserved are first segments of addresses that mean something else. devstoreaccount1 is the
// emulator's account, for which some clients sign differently.
var reserved = []string{"metadata", "login", "subscriptions", "graph", "devstoreaccount1"}

// ValidName reports whether an account can be called so.
func ValidName(name string) bool { return nameForm.MatchString(name) && !Reserved(name) }

// Reserved reports whether a name has another meaning.
func Reserved(name string) bool { return slices.Contains(reserved, name) }

// An Account is one account of the door, with its keys in the clear.
type Account struct {
	Name    string
	Keys    [KeyCount][]byte
	Created time.Time
	Rotated [KeyCount]time.Time // when each key was made
}

// A Book is the accounts in a file. It is read again when the file changes. Its methods
// may be called from any goroutine.
type Book struct {
	path     string
	hidden   string // where the secret is
	secret   []byte
	tokenKey []byte

	mu       sync.Mutex // guards what follows
	accounts map[string]Account
	text     []byte // of the file, when it was read last; its time may not tell two changes apart
	looked   time.Time
	failure  error
}

// Open opens the accounts of a file, which need not be there yet, with the secret of
// another file, which is made if it is not there.
func Open(path, secretPath string) (*Book, error) {
	secret, err := openSecret(secretPath)
	if err != nil {
		return nil, err
	}
	b := &Book{path: path, hidden: secretPath, secret: secret, tokenKey: derive(secret, "leasehold azure tokens")}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.load(); b.failure != nil {
		return nil, b.failure
	}
	return b, nil
}

// NamesIn returns the names of the accounts in a file. It needs no secret, as it does not look at
// their keys. A file that does not exist is an error: fs.ErrNotExist.
func NamesIn(path string) (names []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var form fileForm
	if len(text) > maxFile || json.Unmarshal(text, &form) != nil || form.Version != 1 {
		return nil, fmt.Errorf("%s is not a file of azure accounts", path)
	}
	for _, e := range form.Accounts {
		names = append(names, e.Name)
	}
	return names, nil
}

// Files returns the two files that every server needs: the accounts and the secret.
func (b *Book) Files() (accounts, secret string) { return b.path, b.hidden }

// derive returns a key for one use, so that what signs tokens is not what encrypts keys.
func derive(secret []byte, use string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(use))
	return m.Sum(nil)
}

// openSecret reads the secret, or makes one. It refuses a file that others can read: the encryption
// of the accounts would protect nothing.
func openSecret(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeSecret(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the secret of the azure accounts: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the secret file %s can be read by others (%v): chmod 600 %s", path, info.Mode().Perm(),
			path)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(secret) != secretBytes {
		return nil, fmt.Errorf("the secret file %s is damaged: it must be one line of base64, of %d bytes", path,
			secretBytes)
	}
	return secret, nil
}

func makeSecret(path string) ([]byte, error) {
	secret := random(secretBytes)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return nil, err
	}
	// O_EXCL decides between two programs that start together: both then use the same secret.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return openSecret(path) // somebody else was faster
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(secret) + "\n")
	return secret, errors.Join(err, f.Sync(), f.Close())
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// TokenKey returns the key that signs tokens. It is the same on every server with the same secret,
// so that a token of one is good for all.
func (b *Book) TokenKey() []byte { return b.tokenKey }

// lookEvery is the least time between two looks at the file.
const lookEvery = time.Second

// fresh returns the accounts as the file has them.
func (b *Book) fresh() map[string]Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.looked) >= lookEvery {
		b.load()
	}
	return b.accounts
}

// load reads the file, and takes what is in it if it is other than before. What can't be
// read changes nothing: a file that is half copied must not lock everybody out.
func (b *Book) load() {
	b.looked = time.Now()
	text, err := os.ReadFile(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		b.accounts, b.text, b.failure = nil, nil, nil
		return
	case err == nil && b.text != nil && bytes.Equal(text, b.text):
		b.failure = nil
		return
	}
	var accounts map[string]Account
	if err == nil {
		accounts, err = b.parse(text)
	}
	if b.failure = err; err == nil {
		b.accounts, b.text = accounts, text
	}
}

// Failure returns why the file as it is now could not be used; nil if it could.
func (b *Book) Failure() error {
	b.fresh()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure
}

// Keys returns the keys of an account; none if there is no such account.
func (b *Book) Keys(name string) [][]byte {
	a, ok := b.fresh()[name]
	if !ok {
		return nil
	}
	return a.Keys[:]
}

// Names returns the names of all accounts, in order.
func (b *Book) Names() []string {
	var names []string
	for name := range b.fresh() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Get returns an account.
func (b *Book) Get(name string) (Account, bool) {
	a, ok := b.fresh()[name]
	return a, ok
}

// The form of the file.
type fileForm struct {
	Version  int         `json:"version"`
	Accounts []entryForm `json:"accounts"`
}

type entryForm struct {
	Name    string              `json:"name"`
	Created time.Time           `json:"created"`
	Keys    [KeyCount]string    `json:"keys"` // nonce and ciphertext, in base64
	Rotated [KeyCount]time.Time `json:"rotated"`
}

func (b *Book) parse(text []byte) (accounts map[string]Account, err error) {
	var form fileForm
	if len(text) > maxFile || json.Unmarshal(text, &form) != nil || form.Version != 1 {
		return nil, fmt.Errorf("%s is not a file of azure accounts", b.path)
	}
	accounts = map[string]Account{}
	for _, e := range form.Accounts {
		a := Account{Name: e.Name, Created: e.Created, Rotated: e.Rotated}
		for i := range e.Keys {
			if a.Keys[i], err = b.unseal(e.Name, i, e.Keys[i]); err != nil {
				return nil, err
			}
		}
		accounts[e.Name] = a
	}
	return accounts, nil
}

func (b *Book) sealer() cipher.AEAD {
	block, err := aes.NewCipher(b.secret)
	if err != nil {
		panic(err) // the secret has the right length
	}
	sealer, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return sealer
}

// place ties an encrypted key to its account and number, so that nobody who can write the file can
// move a key to another account.
func place(name string, i int) []byte { return fmt.Appendf(nil, "leasehold azure %s %d", name, i) }

func (b *Book) seal(name string, i int, key []byte) string {
	nonce := random(12)
	return base64.StdEncoding.EncodeToString(b.sealer().Seal(nonce, nonce, key, place(name, i)))
}

func (b *Book) unseal(name string, i int, text string) ([]byte, error) {
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sealed) < 12 {
		return nil, fmt.Errorf("%s: a key of account %s is damaged", b.path, name)
	}
	key, err := b.sealer().Open(nil, sealed[:12], sealed[12:], place(name, i))
	if err != nil {
		return nil, fmt.Errorf("%s: a key of account %s cannot be decrypted: it was encrypted with another secret, "+
			"or the file was changed", b.path, name)
	}
	return key, nil
}

// Create makes an account with two new keys.
func (b *Book) Create(name string, now time.Time) (Account, error) {
	if !ValidName(name) {
		return Account{}, fmt.Errorf("%q cannot be the name of an account: 3 to 24 lower-case letters and digits are "+
			"allowed, and none of %s", name, strings.Join(reserved, ", "))
	}
	return b.change(name, func(a Account, found bool) (Account, error) {
		if found {
			return a, fmt.Errorf("account %s exists already: rotate its keys, or remove it first", name)
		}
		a = Account{Name: name, Created: now}
		for i := range a.Keys {
			a.Keys[i], a.Rotated[i] = random(keyBytes), now
		}
		return a, nil
	})
}

// Rotate makes a new key of an account, the first or the second. From then on, what was signed with
// the old one is refused; the other key still works, so that clients can be moved to it first.
func (b *Book) Rotate(name string, which int, now time.Time) (Account, error) {
	return b.change(name, func(a Account, found bool) (Account, error) {
		switch {
		case !found:
			return a, fmt.Errorf("there is no account %s", name)
		case which < 1 || which > KeyCount:
			return a, fmt.Errorf("an account has key 1 and key %d", KeyCount)
		}
		a.Keys[which-1], a.Rotated[which-1] = random(keyBytes), now
		return a, nil
	})
}

// Remove removes an account. The records under its name stay.
func (b *Book) Remove(name string) error {
	_, err := b.change(name, func(a Account, found bool) (Account, error) {
		if !found {
			return a, fmt.Errorf("there is no account %s", name)
		}
		return Account{}, nil
	})
	return err
}

// change changes one account, and the file in one step. It reads the file again under its lock, so
// that two commands at once do not undo each other's changes. If how returns an account without a
// name, the account is removed.
func (b *Book) change(name string, how func(Account, bool) (Account, error)) (Account, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	release, err := exclude(b.path)
	if err != nil {
		return Account{}, err
	}
	defer release()
	if b.load(); b.failure != nil {
		return Account{}, b.failure
	}
	old, found := b.accounts[name]
	changed, err := how(old, found)
	if err != nil {
		return Account{}, err
	}
	accounts := map[string]Account{}
	for n, a := range b.accounts {
		accounts[n] = a
	}
	if delete(accounts, name); changed.Name != "" {
		accounts[name] = changed
	}
	if err := b.writeFile(accounts); err != nil {
		return Account{}, err
	}
	// Without the text, the next look reads what is really in the file.
	b.accounts, b.text = accounts, nil
	return changed, nil
}

func (b *Book) writeFile(accounts map[string]Account) error {
	form := fileForm{Version: 1, Accounts: []entryForm{}}
	for _, a := range accounts {
		e := entryForm{Name: a.Name, Created: a.Created, Rotated: a.Rotated}
		for i, key := range a.Keys {
			e.Keys[i] = b.seal(a.Name, i, key)
		}
		form.Accounts = append(form.Accounts, e)
	}
	slices.SortFunc(form.Accounts, func(x, y entryForm) int { return strings.Compare(x.Name, y.Name) })
	text, err := json.MarshalIndent(form, "", "  ")
	if err != nil {
		return err
	}
	return replace(b.path, append(text, '\n'))
}

// replace replaces a file in one step, so that no server reads half of it.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".azure-accounts-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
