// Package peer starts real servers of other systems for tests: Redis, PostgreSQL, etcd and the
// rest of what a lease can be kept in. Every server listens on a loopback address of its own, keeps
// its data in a directory of the test, and is killed when the test ends. A test whose server is not
// installed is skipped, and says what is missing and how to get it.
//
// A server can be killed, restarted on the same address with the same data, paused, and put back to
// an older copy of its data. Between a client and a server, or two servers, a [Proxy] makes the
// network slow, silent or broken; a [Clock] moves a server's wall clock.
//
// Programs are looked for in the directory that LEASEHOLD_PEERS names, in bin/peers of the
// repository, and in PATH. "make deps" and "make peers" put them there. Linux only.
package peer
