// Package paste has what to paste to reach a server by our own API, with each tool.
package paste

import (
	"net"
	"net/url"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// Tools are what our own API is used with.
var Tools = []door.Tool{
	{ID: "cli", Name: "Command line",
		What: "Run a command while you hold a lease; it is stopped before the lease can be anybody else's.",
		Text: func(p door.Place) string {
			return door.Lines("export LEASEHOLD_SERVER="+p.Origin,
				door.If(named(p), "export LEASEHOLD_NAMESPACE="+p.Namespace),
				door.If(p.Access, "leasehold login"),
				"leasehold run my/job -- ./job.sh", "leasehold list")
		}},
	{ID: "go", Name: "Go", What: "A hold renews itself, ends its context when it is lost, and carries a fencing token.",
		Text: func(p door.Place) string {
			return door.Lines(`c, err := client.Dial(ctx, client.Config{Servers: []string{"`+p.Origin+`"}`+
				door.If(named(p), `, Namespace: "`+p.Namespace+`"`)+`})`,
				`err = c.Do(ctx, "my/job", func(ctx context.Context, h *client.Hold) error {`,
				"    return work(ctx, h.Pass())", "}, client.TTL(30*time.Second), client.Wait(5*time.Minute))")
		}},
	{ID: "python", Name: "Python", What: "A with block that waits its turn, renews its lease, and gives it back.",
		Text: func(p door.Place) string {
			return door.Lines("import leasehold  # clients/python in the repository: pip install ./clients/python",
				`client = leasehold.Client("`+p.Origin+`"`+door.If(named(p), `, namespace="`+p.Namespace+`"`)+
					door.If(p.Access, `, token_file="/path/to/token"`)+`)`,
				`with client.hold("my/job", ttl=30, wait=300) as h:`, "    work(token=h.token)")
		}},
	{ID: "curl", Name: "curl", What: "The HTTP API: JSON in and out.",
		Text: func(p door.Place) string {
			curl := "curl" + door.If(p.Access, ` -H "Authorization: Bearer $LEASEHOLD_TOKEN"`) + " " + p.Origin
			query := door.If(named(p), "?namespace="+url.QueryEscape(p.Namespace))
			return door.Lines(curl+"/v1/acquire"+query+` -d '{"resource":"my/job","holder":"me","ttl":"1m"}'`,
				curl+"/v1/renew"+query+` -d '{"id":"THE-ID"}'`, curl+"/v1/release"+query+` -d '{"id":"THE-ID"}'`)
		}},
	{ID: "redis", Name: "Redis clients",
		What: "RESP on the same port: redis-cli, go-redis, redis-py, ioredis, and any other.",
		Text: func(p door.Place) string {
			host, port, _ := net.SplitHostPort(p.Host())
			return door.Lines("redis-cli -h "+host+" -p "+port+door.If(p.Secure(), " --tls")+
				door.If(p.Access, " --askpass"),
				"LH.ACQUIRE my/job HOLDER me TTL 1m"+door.If(named(p), " NAMESPACE "+p.Namespace),
				"LH.RENEW THE-ID", "LH.RELEASE THE-ID")
		}},
	{ID: "env", Name: "Environment", What: "For a container or a unit file: every client of ours reads these.",
		Text: func(p door.Place) string {
			return door.Lines("export LEASEHOLD_SERVER="+p.Origin, "export LEASEHOLD_NAMESPACE="+p.Namespace,
				door.If(p.Access, "export LEASEHOLD_TOKEN_FILE=~/.leasehold-token"))
		}},
}

func named(p door.Place) bool { return p.Namespace != leasehold.DefaultNamespace }
