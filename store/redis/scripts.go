package redis

import (
	"crypto/sha1" //nolint:gosec // the name of a script in Redis
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed lua/*.lua
var files embed.FS

// A script is one verb. Redis knows it by the hash of its text.
type script struct {
	name, text, hash string

	// durable says that its effects must survive a failover in strict mode.
	durable bool

	// bound says that its text contains the run_id of the server: see bind.
	bound bool
}

// Only what takes up memory for longer is refused when memory is full. Who holds a lease can renew
// and release it then, too. The header without "no-writes" also keeps replicas from running any of
// them.
var (
	acquireScript = newScript("acquire", "#!lua", true)
	lookScript    = newScript("acquire", "#!lua flags=allow-oom", true) // acquire when memory is full
	renewScript   = newScript("renew", "#!lua flags=allow-oom", true)
	releaseScript = newScript("release", "#!lua flags=allow-oom", true)
	breakScript   = newScript("break", "#!lua flags=allow-oom", true)
	readScript    = newScript("read", "#!lua flags=allow-oom", false)
	namesScript   = newScript("names", "#!lua flags=allow-oom", false)
	initScript    = newScript("init", "#!lua", true)
	probeScript   = newScript("probe", "#!lua flags=allow-oom", false)
	runScript     = newScript("run", "#!lua flags=allow-oom", false)
)

// place is where the run_id of the server belongs.
const place = "@RUN@"

func newScript(name, header string, durable bool) script {
	text := header + "\n" + file("common") + "\n" + file(name)
	return script{name: name, text: text, hash: hashOf(text), durable: durable, bound: strings.Contains(text, place)}
}

func hashOf(text string) string {
	hash := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(hash[:])
}

// file returns a file, with those that it includes.
func file(name string) string {
	b, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	var all strings.Builder
	for line := range strings.Lines(string(b)) {
		if other, ok := strings.CutPrefix(strings.TrimSpace(line), "--@ "); ok {
			line = file(other)
		}
		all.WriteString(line)
	}
	return all.String()
}
