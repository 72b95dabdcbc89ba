//go:build linux

package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/push"
	"github.com/redis/rueidis"
)

// A teller sends commands by one library, on two connections.
type teller struct {
	name string
	send func(ctx context.Context, words ...any) (any, error)
	wait func(ctx context.Context, words ...any) (any, error) // may block
	pipe func(ctx context.Context, commands [][]any) ([]any, error)
}

func TestGoRedis(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
				options := &redis.Options{Addr: s.address(), Protocol: protocol, TLSConfig: s.tls(t), ClientName: "story"}
				if s.token != "" {
					options.Username, options.Password = "default", s.token
				}
				c := redis.NewClient(options)
				t.Cleanup(func() { _ = c.Close() })
				send := func(ctx context.Context, words ...any) (any, error) { return c.Do(ctx, words...).Result() }
				tell(t, teller{name: fmt.Sprint("go-redis", protocol), send: send, wait: send,
					pipe: func(ctx context.Context, commands [][]any) (answers []any, err error) {
						p := c.Pipeline()
						for _, words := range commands {
							p.Do(ctx, words...)
						}
						done, _ := p.Exec(ctx)
						for _, one := range done {
							answers = append(answers, either(one.(*redis.Cmd).Result()))
						}
						return answers, nil
					}})
				if protocol == 3 {
					watchByGoRedis(t, c)
				}
			})
		}
	})
}

// pushes takes what the server says by itself.
type pushes chan []any

func (p pushes) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, values []any) error {
	p <- values
	return nil
}

// watchByGoRedis watches on one connection, while the others go on.
func watchByGoRedis(t *testing.T, c *redis.Client) {
	t.Helper()
	seen := make(pushes, 16)
	if err := c.RegisterPushNotificationHandler("lh.watch", seen, false); err != nil {
		t.Fatal(err)
	}
	watch := c.Conn()
	defer watch.Close()
	if err := watch.Do(t.Context(), "LH.WATCH", "PREFIX", "pushed/", "TAG", "t").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), "LH.ACQUIRE", "pushed/r", "HOLDER", "ann", "ID", "pushed").Err(); err != nil {
		t.Fatal(err)
	}
	for len(seen) == 0 && t.Context().Err() == nil { // it looks for pushes when it reads replies
		if err := watch.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	got := <-seen
	event, _ := got[2].(map[any]any)
	if len(got) != 3 || got[1] != "t" || event["id"] != "pushed" || event["kind"] != "acquired" {
		t.Errorf("pushed: %v", got)
	}
}

func TestRueidis(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		options := rueidis.ClientOption{InitAddress: []string{s.address()}, TLSConfig: s.tls(t), DisableCache: true,
			ForceSingleClient: true}
		if s.token != "" {
			options.Username, options.Password = "default", s.token
		}
		c, err := rueidis.NewClient(options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		texts := func(words []any) (texts []string) {
			for _, word := range words {
				texts = append(texts, fmt.Sprint(word))
			}
			return texts
		}
		tell(t, teller{
			name: "rueidis",
			send: func(ctx context.Context, words ...any) (any, error) {
				return c.Do(ctx, c.B().Arbitrary(texts(words)...).Build()).ToAny()
			},
			wait: func(ctx context.Context, words ...any) (any, error) {
				return c.Do(ctx, c.B().Arbitrary(texts(words)...).Blocking()).ToAny()
			},
			pipe: func(ctx context.Context, commands [][]any) (answers []any, err error) {
				var all []rueidis.Completed
				for _, words := range commands {
					all = append(all, c.B().Arbitrary(texts(words)...).Build())
				}
				for _, one := range c.DoMulti(ctx, all...) {
					answers = append(answers, either(one.ToAny()))
				}
				return answers, nil
			},
		})
	})
}

// either returns an answer or its error.
func either(answer any, err error) any {
	if err != nil {
		return err
	}
	return answer
}

// field returns a field of an answer: of a map, or of the list that RESP2 has instead.
func field(t *testing.T, answer any, name string) any {
	t.Helper()
	switch answer := answer.(type) {
	case map[any]any:
		return answer[name]
	case map[string]any:
		return answer[name]
	case []any:
		for i := 0; i+1 < len(answer); i += 2 {
			if answer[i] == name {
				return answer[i+1]
			}
		}
	}
	t.Fatalf("no %s in %v", name, answer)
	return nil
}

// tell tells the story of a lease.
func tell(t *testing.T, by teller) {
	t.Helper()
	resource, ctx := by.name+"/r", t.Context()
	must := func(words ...any) any {
		t.Helper()
		answer, err := by.send(ctx, words...)
		if err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		return answer
	}
	lease := must("LH.ACQUIRE", resource, "HOLDER", "ann", "TTL", "30s", "ID", by.name+"1", "LABEL", "team=a")
	first, _ := field(t, lease, "token").(int64)
	if first == 0 || field(t, lease, "id") != by.name+"1" {
		t.Fatalf("granted: %v", lease)
	}
	refused := func(want string, words ...any) {
		t.Helper()
		if answer, err := by.send(ctx, words...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %v; want %s", words, answer, err, want)
		}
	}
	refused("HELD "+resource+" is held by ann", "LH.ACQUIRE", resource, "HOLDER", "bob")
	refused("INVALID", "LH.ACQUIRE", resource, "COLOUR", "red")
	refused("unknown command", "LH.PAINT", "red")
	if renewed := must("LH.RENEW", by.name+"1"); field(t, renewed, "token") != first {
		t.Errorf("renewed: %v", renewed)
	}
	waitFor(t, by, resource, first)
	pipeline(t, by)
}

// waitFor releases a lease for which another connection waits.
func waitFor(t *testing.T, by teller, resource string, first int64) {
	t.Helper()
	granted := make(chan any, 1)
	go func() {
		granted <- either(by.wait(t.Context(), "LH.ACQUIRE", resource, "HOLDER", "bob", "WAIT", "60s", "ID", by.name+"2"))
	}()
	for {
		seen, err := by.send(t.Context(), "LH.GET", resource)
		if err != nil {
			t.Fatal(err)
		}
		if field(t, seen, "waiting") == int64(1) {
			break
		}
	}
	select {
	case early := <-granted:
		t.Fatalf("granted while it is held: %v", early)
	default:
	}
	if answer, err := by.send(t.Context(), "LH.RELEASE", by.name+"1"); answer != "OK" || err != nil {
		t.Fatalf("released: %v, %v", answer, err)
	}
	lease := <-granted
	if next, _ := field(t, lease, "token").(int64); next <= first {
		t.Errorf("granted after a wait: %v", lease)
	}
}

// pipeline sends many commands at once, one of which is refused.
func pipeline(t *testing.T, by teller) {
	t.Helper()
	var commands [][]any
	for i := range 20 {
		commands = append(commands, []any{"LH.ACQUIRE", fmt.Sprint(by.name, "/many/", i), "HOLDER", "ann"})
	}
	commands = append(commands, []any{"LH.RENEW", "nobody"})
	answers, err := by.pipe(t.Context(), commands)
	if err != nil || len(answers) != len(commands) {
		t.Fatalf("%d answers: %v", len(answers), err)
	}
	last := int64(0)
	for _, lease := range answers[:20] {
		token, _ := field(t, lease, "token").(int64)
		if token <= last {
			t.Errorf("token %d comes after %d", token, last)
		}
		last = token
	}
	if refused, ok := answers[20].(error); !ok || !strings.HasPrefix(refused.Error(), "NOTFOUND") {
		t.Errorf("a renewal of nothing: %v", answers[20])
	}
}
