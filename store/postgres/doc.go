// Package postgres keeps leases in a PostgreSQL database.
//
//	s, err := postgres.Open(ctx, postgres.Config{URL: "postgres://app@db.example/app"})
//	c, err := client.Open(ctx, s, client.Config{})
//
// Its schema, "leasehold" unless the configuration says otherwise, is made by [Migrate], or by the first
// Open with migrate=yes in its URL. Each verb is one function in that schema and runs in one
// transaction; docs/stores/postgres.md lists the tables and the rights that a program needs.
//
// # What it promises
//
//   - The clock of the database server decides when a lease ends. Each function reads it after it has locked
//     the row of the resource, so that no time passes between the decision and the clock. A clock that is
//     set forward ends leases early. It cannot be prevented, and is logged.
//   - Tokens grow per resource: they are the server's clock in microseconds, or one more than the last token
//     if that is larger. They survive the removal of a row, a restore and a failover, unless the new
//     server's clock is behind.
//   - An answer comes after the commit is durable as synchronous_commit = on means it: on the disk of the
//     server, and of its synchronous standby if it has one.
//   - If the server is another one than before, or on another timeline, grants may be missing. Nothing new is
//     granted then until the largest TTL has passed ([Config.MaxTTL]).
//   - Waiters are granted in the order of their arrival.
//   - A transaction of the program itself can be fenced: see [Store.Fence].
package postgres
