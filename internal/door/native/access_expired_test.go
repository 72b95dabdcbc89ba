package native

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// An accessLog is an engine that notes the changes of access it is asked for, but not the uses of tokens.
type accessLog struct {
	*memory.Engine
	changes []*core.ChangeAccess
}

func (l *accessLog) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if change, ok := c.(*core.ChangeAccess); ok && len(change.Used) == 0 {
		l.changes = append(l.changes, change)
	}
	return l.Engine.Do(ctx, c)
}

// Every operation that changes access says what time it is, so that tokens that have expired do not count.
func TestChangesOfAccessHaveTheTime(t *testing.T) {
	log := &accessLog{Engine: memory.Start(engine.NewGoClock())}
	t.Cleanup(func() { _ = log.Close() })
	door := open(log, Config{})
	ask := func(secret, method, target, body string) {
		t.Helper()
		log.changes = nil
		from := time.Now().UnixNano()
		askAs(t, door, secret, method, target, body).expect(200)
		until := time.Now().UnixNano()
		if len(log.changes) != 1 || log.changes[0].Wall < from || log.changes[0].Wall > until {
			t.Errorf("%s %s between %d and %d asked for %+v", method, target, from, until, log.changes)
		}
	}
	ask("", "POST", "/v1/access/apply", `{"access":`+firstDocument()+`}`)
	tried := 0
	for _, o := range operations {
		if !strings.HasPrefix(o.path, "/v1/access") || o.method == "GET" {
			continue
		}
		name, body := "x", map[string]string{
			"apply-access":    `{"access":` + strings.Replace(firstDocument(), "{", `{"roles":[{"name":"r","verbs":["read"]}],`, 1) + `}`,
			"create-token":    `{"principal":"ann","id":"x"}`,
			"put-role":        `{"verbs":["read"]}`,
			"put-binding":     `{"role":"member","principal":"ann"}`,
			"put-quota":       `{"principal":"x","leases":7}`,
			"put-issuer":      `{"url":"https://x","audiences":["l"]}`,
			"put-certificate": `{"san":"dns:*.x"}`,
		}[o.name]
		if strings.HasSuffix(o.name, "-quota") {
			name = "principal%2Fx"
		}
		ask(root, o.method, strings.Replace(o.path, "{name...}", name, 1), body)
		tried++
	}
	if tried != 13 {
		t.Errorf("%d operations change access: is each of them tried?", tried)
	}
}

// A change that would leave admins with nothing but expired tokens is refused, also when it is only tried.
func TestExpiredTokensAreNoAdmins(t *testing.T) {
	door := withAccess(t)
	document := func(expires string) string {
		return fmt.Sprintf(`{"bindings":[{"role":"admin","principal":"root","namespace":"*"}],"tokens":[{"id":"old",`+
			`"principal":"root","hash":"%s","expires":"2020-01-01T00:00:00Z"},{"id":"boot","principal":"root"%s}]}`,
			hashOf("lh_old"), expires)
	}
	apply := func(more, document string) answer {
		t.Helper()
		return askAs(t, door, root, "POST", "/v1/access/apply", `{`+more+`"access":`+document+`}`)
	}
	apply("", document("")).expect(200, `"applied":true`)
	for _, more := range []string{`"dry_run":true,`, ""} {
		apply(more, document(`,"expires":"2021-01-01T00:00:00Z"`)).expect(422, "all tokens of admins have expired")
	}
	askAs(t, door, root, "DELETE", "/v1/access/tokens/boot", "").expect(422, "all tokens of admins have expired")
	askAs(t, door, root, "POST", "/v1/access/tokens", `{"principal":"root","ttl":"1h"}`).expect(200)
	askAs(t, door, root, "DELETE", "/v1/access/tokens/boot", "").expect(200)
}
