package profile

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Agents is the directory in which the agents of one person find each other, and the server that they share.
type Agents string

// UserAgents returns the directory of the person whose environment it is. It may not be there yet.
func UserAgents(getenv func(string) string) (Agents, error) {
	base, home := getenv("XDG_STATE_HOME"), getenv("HOME")
	switch {
	case runtime.GOOS == "windows":
		base = getenv("LocalAppData")
	case filepath.IsAbs(base):
	case home != "":
		base = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(base) {
		return "", errors.New("HOME is not set, so nobody knows where your agents meet: name a server with --server")
	}
	return Agents(filepath.Join(base, "leasehold", "agents")), nil
}

// File returns the path of one of its files.
func (d Agents) File(name string) string { return filepath.Join(string(d), name) }

// addressFile says where the shared server is.
const addressFile = "address.json"

// A published is where the shared server is.
type published struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

// Publish writes where this process serves, all of it at once.
func (d Agents) Publish(url string) error {
	text, err := json.Marshal(published{URL: url, PID: os.Getpid()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.File(addressFile+".new"), text, 0o600); err != nil {
		return err
	}
	return os.Rename(d.File(addressFile+".new"), d.File(addressFile))
}

// Withdraw says that there is no shared server any more.
func (d Agents) Withdraw() { _ = os.Remove(d.File(addressFile)) }

// Published returns where the shared server is or was; empty if there was none.
func (d Agents) Published() (url string) {
	text, err := os.ReadFile(d.File(addressFile))
	var p published
	if err != nil || json.Unmarshal(text, &p) != nil {
		return ""
	}
	return p.URL
}

// Server returns where the shared server is, and whether it answers there. A server that was killed leaves its address
// behind, and another program may have the port by now.
func (d Agents) Server(ctx context.Context) (url string, ok bool) {
	url = d.Published()
	return url, url != "" && Answers(ctx, url)
}

// Answers reports whether a server of ours is at an address.
func Answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/version", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var version struct{ Version string }
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(&version) == nil &&
		version.Version != ""
}
