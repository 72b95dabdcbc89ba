package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// warned is where a connection notes that it got a warning during a call.
const warned = "leasehold: warned"

// onNotice notes warnings of class 01000. After a commit whose wait for a synchronous standby was cancelled,
// PostgreSQL reports success with such a warning, although a failover may still undo it.
func onNotice(next pgconn.NoticeHandler) pgconn.NoticeHandler {
	return func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == codeWarning {
			c.CustomData()[warned] = n.Message
		}
		if next != nil {
			next(c, n)
		}
	}
}

// call runs one function, and leaves a connection to renewals: a session that keeps a row locked may hold any
// number of other calls up, and each of them keeps its connection.
func (s *Store) call(ctx context.Context, scan func(pgx.Rows) error, sql string, args ...any) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return unavailable("all connections to PostgreSQL are in use: %v", context.Cause(ctx))
	}
	defer func() { <-s.slots }()
	return s.callAtOnce(ctx, scan, sql, args...)
}

// callAtOnce runs one function in a transaction of its own, in one round trip. The level is set here because a
// role may have another default, in which a function would not see what was committed while it waited.
func (s *Store) callAtOnce(ctx context.Context, scan func(pgx.Rows) error, sql string, args ...any) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.connectError(err)
	}
	defer conn.Release()
	custom := conn.Conn().PgConn().CustomData()
	delete(custom, warned)

	var b pgx.Batch
	b.Queue("begin isolation level read committed")
	b.Queue(sql, args...)
	b.Queue("commit")
	results := conn.SendBatch(ctx, &b)
	committing, err := s.collect(results, scan)
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		if conn.Conn().PgConn().TxStatus() == 'E' {
			_, _ = conn.Exec(ctx, "rollback") // else the pool would close the connection
		}
		return s.failure(ctx, err, committing)
	}
	if message, ok := custom[warned]; ok {
		return undecided("PostgreSQL has committed, but not safely: %v", message)
	}
	return nil
}

// collect reads the three results. It reports whether the function had been answered, so that the commit may
// have been executed.
func (s *Store) collect(results pgx.BatchResults, scan func(pgx.Rows) error) (committing bool, err error) {
	if _, err := results.Exec(); err != nil {
		return false, err
	}
	rows, err := results.Query()
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return true, err
		}
	}
	if rows.Err() != nil {
		return false, rows.Err()
	}
	rows.Close()
	_, err = results.Exec()
	return true, err
}

// An answer is what the functions of the schema return.
type answer struct {
	verdict  string
	now      time.Time
	no       int64
	name, id []byte
	token    int64
	ttl      int64 // µs, as remains
	remains  int64
	acquired time.Time
	deadline time.Time
	breaks   *time.Time
	note     []byte
	value    []byte
	how      int64
	ended    time.Time
	broken   []byte
	waiting  int64
	position int64
	n        int64
	queue    []byte
}

// columns are those of an answer, with a value where there is none: scanning is simpler then.
const columns = `verdict, now, coalesce(no, 0), name, id, coalesce(token, 0), coalesce(ttl, 0), coalesce(remains, 0),
	coalesce(acquired, 'epoch'), coalesce(deadline, 'epoch'), breaks, note::text, value, coalesce(how, 0)::bigint,
	coalesce(ended, 'epoch'), broken::text, coalesce(waiting, 0), coalesce(position, 0), coalesce(n, 0), queue::text`

func (a *answer) scan(rows pgx.Rows) error {
	return rows.Scan(&a.verdict, &a.now, &a.no, &a.name, &a.id, &a.token, &a.ttl, &a.remains, &a.acquired,
		&a.deadline, &a.breaks, &a.note, &a.value, &a.how, &a.ended, &a.broken, &a.waiting, &a.position, &a.n, &a.queue)
}

// ask calls a function and returns its answers. They are nothing unless the commit is certain.
func (s *Store) ask(ctx context.Context, function string, args ...any) ([]answer, error) {
	return s.askBy(ctx, s.call, function, args...)
}

// A caller is call or callAtOnce.
type caller func(ctx context.Context, scan func(pgx.Rows) error, sql string, args ...any) error

func (s *Store) askBy(ctx context.Context, call caller, function string, args ...any) ([]answer, error) {
	var answers []answer
	sent := s.clock.Now()
	err := call(ctx, func(rows pgx.Rows) error {
		var a answer
		err := a.scan(rows)
		answers = append(answers, a)
		return err
	}, "select "+columns+" from "+s.schema+"."+function, args...)
	if err != nil {
		return nil, err
	}
	if len(answers) > 0 {
		s.observe(answers[0].now, sent)
	}
	return answers, nil
}

// observe reports steps of the server's clock.
func (s *Store) observe(reading time.Time, sent time.Duration) {
	if step := s.steps.Observe(reading, sent, s.clock.Now()); step != 0 {
		s.log.Warn("the clock of the PostgreSQL server has stepped: leases end too early or too late by as much",
			"step", step, "schema", s.schema)
	}
}
