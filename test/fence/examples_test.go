package fence

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
)

// A hold stands for a client.Hold, of which the examples of docs/fencing.md need only the pass.
type hold fence.Pass

func (h hold) Pass() fence.Pass { return fence.Pass(h) }

func exampleMemory(ctx context.Context, h hold, write func(context.Context) error) error {
	guard := fence.NewMemory()
	err := guard.Do(ctx, "disks/7", h.Pass(), func(ctx context.Context) error {
		return write(ctx) // ctx ends when a newer holder comes, which waits until write has returned
	})
	return err
}

func exampleSQL(ctx context.Context, h hold, db *sql.DB) error {
	guard, err := fence.NewSQL(db, fence.SQLite, "")
	if err != nil {
		return err
	}
	if err := guard.CreateTable(ctx); err != nil { // once is enough
		return err
	}
	return guard.Tx(ctx, "accounts/7", h.Pass(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7")
		return err
	})
}

func exampleRedis(ctx context.Context, h hold, rdb *redis.Client) error {
	guard := fence.NewRedis(func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
		return rdb.Eval(ctx, script, keys, args...).Result()
	})
	return guard.Set(ctx, "reports/nightly", h.Pass(), "reports:nightly:last", "2031-04-01")
}

func exampleRedisRun(ctx context.Context, h hold, guard *fence.Redis) (any, error) {
	count, err := guard.Run(ctx, "reports/nightly", h.Pass(), "return redis.call('INCRBY', KEYS[1], ARGV[1])",
		[]string{"reports:nightly:rows"}, 500)
	return count, err
}

func exampleFiles(ctx context.Context, h hold, dir string, data []byte) error {
	files, err := fence.OpenFiles(dir)
	if err != nil {
		return err
	}
	return files.WriteFile(ctx, "reports/nightly", h.Pass(), "report.csv", data, 0o644)
}

func exampleHandler(service http.Handler) http.Handler {
	protected := fence.Handler(fence.NewMemory(), func(r *http.Request) string {
		return strings.TrimPrefix(r.URL.Path, "/") // the resource; empty: not guarded, such as a read
	}, service)
	return protected
}

func exampleRequest(h hold, request *http.Request) {
	h.Pass().Set(request.Header)
}

// What docs/fencing.md shows is what is compiled here, and what runs below.
func TestTheFencingPageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../docs/fencing.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources string
	for _, name := range []string{"examples_test.go", "../../fence/fencegrpc/fencegrpc_test.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources += plain(string(text))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		if !strings.Contains(sources, plain(block[1])) {
			t.Errorf("no test has this:\n%s", block[1])
		}
	}
	if len(blocks) < 8 {
		t.Errorf("the page shows only %d examples", len(blocks))
	}
}

// plain returns source without indentation.
func plain(source string) string { return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(source, "") }

// Each example lets a holder in, and refuses one that is late.
func TestExamples(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	db := openSQLite(t)
	for _, statement := range []string{"CREATE TABLE accounts (id integer, balance integer)", "INSERT INTO accounts VALUES (7, 100)"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	protected := exampleHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, example := range map[string]func(h hold) error{
		"SQL":   func(h hold) error { return exampleSQL(ctx, h, db) },
		"files": func(h hold) error { return exampleFiles(ctx, h, dir, []byte("rows")) },
		"HTTP": func(h hold) error {
			r, w := httptest.NewRequest("PUT", "/disks/7", nil), httptest.NewRecorder()
			exampleRequest(h, r)
			if protected.ServeHTTP(w, r); w.Code == http.StatusPreconditionFailed {
				return leasehold.ErrLost
			}
			return nil
		},
	} {
		refusesTheLate(t, name, example)
	}
	if err := exampleMemory(ctx, hold{Token: 1}, func(context.Context) error { return nil }); err != nil {
		t.Errorf("memory: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "report.csv")); err != nil || string(text) != "rows" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestExamplesOfRedis(t *testing.T) {
	rdb := dial(t, startRedis(t))
	refusesTheLate(t, "Redis", func(h hold) error { return exampleRedis(t.Context(), h, rdb) })
	if n, err := exampleRedisRun(t.Context(), hold{Token: 9}, guardOf(rdb)); err != nil || n != int64(500) {
		t.Errorf("the script returned %v, %v", n, err)
	}
}

func refusesTheLate(t *testing.T, name string, example func(h hold) error) {
	t.Helper()
	for _, step := range []struct {
		token leasehold.Token
		late  bool
	}{{7, false}, {7, false}, {8, false}, {7, true}} {
		if err := example(hold{Token: step.token}); errors.Is(err, leasehold.ErrLost) != step.late || !step.late && err != nil {
			t.Errorf("%s, token %d: %v", name, step.token, err)
		}
	}
}
