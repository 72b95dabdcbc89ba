package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/internal/access/upkeep"
)

// freePeers returns the list of a cluster on addresses that were free a moment ago.
func freePeers(t *testing.T, names ...string) string {
	t.Helper()
	var list []string
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, name+"="+l.Addr().String())
		l.Close()
	}
	return strings.Join(list, ",")
}

// A trio is a cluster of three servers in this process.
type trio struct {
	*testing.T
	peers  string
	dirs   map[string]string
	access string            // the setting
	files  map[string]string // of servers: the setting access-file
}

func newTrio(t *testing.T) *trio {
	return &trio{t, freePeers(t, "n1", "n2", "n3"), map[string]string{"n1": t.TempDir(), "n2": t.TempDir(), "n3": t.TempDir()}, "true", nil}
}

// runs starts all servers together, calls fn with their addresses, and stops them.
func (c *trio) runs(fn func(addresses map[string]string)) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	var all, ready sync.WaitGroup
	var mu sync.Mutex
	addresses, logs := map[string]string{}, &log{}
	for name, dir := range c.dirs {
		s := settings(c.T, map[string]string{
			"name": name, "data": dir, "initial-cluster": c.peers, "insecure": "true", "access": c.access,
			"access-file": c.files[name],
		})
		s.Log = logs
		ready.Add(1)
		var once sync.Once
		all.Go(func() {
			defer once.Do(ready.Done)
			err := Run(ctx, s, func(v Serving) {
				mu.Lock()
				defer mu.Unlock()
				if addresses[name] = v.Address; !v.Access {
					c.Errorf("access is off on %s", name)
				}
				once.Do(ready.Done)
			})
			if err != nil {
				c.Errorf("%s: %v", name, err)
			}
		})
	}
	ready.Wait()
	if !c.Failed() {
		fn(addresses)
	}
	cancel()
	all.Wait()
	for name := range c.dirs {
		if secret := c.secret(name); secret != "" && strings.Contains(logs.String(), secret) {
			c.Errorf("the log has the secret of %s", name)
		}
	}
}

// secret returns the admin token that a server has; empty: none.
func (c *trio) secret(server string) string {
	b, err := os.ReadFile(upkeep.TokenFile(c.dirs[server]))
	if err != nil && !os.IsNotExist(err) {
		c.Error(err)
	}
	return strings.TrimSpace(string(b))
}

// works reports whether a token lets its bearer do something.
func (c *trio) works(address, token, id string) bool {
	body := fmt.Sprintf(`{"resource": "r/%s", "holder": "h", "id": "%[1]s", "ttl": "1h"}`, id)
	request, err := http.NewRequest(http.MethodPost, "http://"+address+"/v1/acquire", strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	c.Logf("%d %s", response.StatusCode, text)
	return response.StatusCode == http.StatusOK
}

func TestThreeServersBeginAccessOnce(t *testing.T) {
	c := newTrio(t)
	var token, owner string
	c.runs(func(addresses map[string]string) {
		for name, dir := range c.dirs {
			if secret := c.secret(name); secret != "" {
				if token != "" {
					t.Error("two servers have a token")
				}
				token, owner = secret, name
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.pending")); len(left) > 0 {
				t.Errorf("%s left %v", name, left)
			}
		}
		for name, address := range addresses {
			if !c.works(address, token, "with-"+name) || c.works(address, "", "without-"+name) {
				t.Errorf("%s does not obey the rules", name)
			}
		}
	})
	if t.Failed() {
		return
	}
	// Locked out: one server's mark is enough. Nobody says --access any more, and the rules are in force.
	other := map[string]string{"n1": "n2", "n2": "n3", "n3": "n1"}[owner]
	if err := upkeep.Mark(c.dirs[other]); err != nil {
		t.Fatal(err)
	}
	c.access = "false"
	c.runs(func(addresses map[string]string) {
		fresh := c.secret(other)
		if fresh == "" || c.secret(owner) != token || upkeep.Marked(c.dirs[other]) {
			t.Fatal("no other token was made, or the first one is gone")
		}
		for name, address := range addresses {
			if !c.works(address, fresh, "fresh-"+name) || !c.works(address, token, "old-"+name) || c.works(address, "", "none-"+name) {
				t.Errorf("%s does not obey the rules", name)
			}
		}
	})
}

// Files that differ: one is in force, those who have another say so, and no restart changes that.
func TestAccessFilesThatDiffer(t *testing.T) {
	c, dir := newTrio(t), t.TempDir()
	write := func(name, group string) string {
		path := filepath.Join(dir, name)
		text := "bindings:\n- {role: admin, principal: admin, namespace: '*'}\n- {role: member, group: " + group + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := write("a.yaml", "team-a"), write("b.yaml", "team-b")
	c.files = map[string]string{"n1": a, "n2": b, "n3": b}
	// look returns which servers warn, and checks what is in force.
	look := func(addresses map[string]string) (warned string) {
		for _, name := range []string{"n1", "n2", "n3"} {
			if strings.Contains(c.get(addresses[name], "/readyz"), "differs from the one that server") {
				warned += name
			}
		}
		in := c.get(addresses["n1"], "/v1/access")
		if strings.Contains(in, "team-a") != (warned == "n2n3") || strings.Contains(in, "team-b") != (warned != "n2n3") {
			t.Errorf("%s are warned, and in force is %s", warned, in)
		}
		return warned
	}
	var first string
	c.runs(func(addresses map[string]string) { first = look(addresses) })
	if first != "n1" && first != "n2n3" {
		t.Fatalf("warned are %q", first)
	}
	c.runs(func(addresses map[string]string) {
		if again := look(addresses); again != first {
			t.Errorf("first %s were warned, then %s", first, again)
		}
	})
	c.files = map[string]string{"n1": b, "n2": b, "n3": b}
	c.runs(func(addresses map[string]string) {
		for name, address := range addresses {
			t.Log(name, c.get(address, "/readyz"))
		}
		if in := c.get(addresses["n1"], "/v1/access"); !strings.Contains(in, "team-b") || strings.Contains(in, "team-a") {
			t.Errorf("in force is %s", in)
		}
	})
}

// get reads something as the admin.
func (c *trio) get(address, path string) string {
	c.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		c.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.secret("n1")+c.secret("n2")+c.secret("n3"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}
