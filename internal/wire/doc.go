// Package wire is the bytes that last for ever: log entries and snapshots. What a
// released server once wrote, every later server reads, to the same values.
//
// There is one way to write a value, and only that way is read: for all bytes that are
// accepted, writing what was read gives the same bytes. Two replicas with the same
// state therefore write the same snapshot, and its checksum is a hash of the state.
//
// # Versions
//
// Entries and snapshots begin with two numbers. The format says how bytes are laid
// out. The feature level says which verbs, kinds, fields and enumeration values there are: a
// new one needs a new level, since a server that ignored what it does not know would
// come to another state than its peers. A server that meets a newer format, level, verb or
// field stops with [ErrUnknown]; bytes that no server wrote are [ErrMalformed]. The
// files in testdata/golden show what is written byte by byte, and hold it in place.
//
//	format 2, level 1   the first; builds from before it wrote format 1, which is refused
//
// An entry has the least level that its verbs need; a snapshot has that of its state, the
// rules by which it decides.
//
// # Fields
//
//	unsigned   groups of 7 bits, lowest first, the top bit of a byte set if more
//	           follow; in the fewest bytes
//	signed     as unsigned, of 0, -1, 1, -2, 2 … written as 0, 1, 2, 3, 4 …
//	duration   signed; nanoseconds
//	time       signed; nanoseconds of cluster time, 0 for none
//	wall       signed; Unix nanoseconds
//	moment     flag; if 1, wall
//	flag       one byte, 0 or 1
//	text       unsigned length; so many bytes
//	labels     unsigned count; for each a text key and a text value, keys ascending,
//	           none empty, each once
//	value      one byte, 0; a text. Or one byte, 1; a large
//	large      32 bytes, the SHA-256 of bytes that are kept elsewhere; unsigned, how many
//	           they are
//	how, kind, alarm kind, state, code, unclean, what, relation, do, pick, order
//	           one byte; the number that the dictionary or the core gives to the value
//	X…         unsigned count; the fields of each X
//	X?         flag; if 1, the fields of X
//
// # Messages
//
// The fields of a command are a message: for each field that is not zero its tag, one byte
// from 1 to 127, and its value; tags ascend. A zero that is written, a tag that stands twice or
// out of order, and one that no field has are refused. The descriptions in this package, one
// for both directions, are the list of all fields: in
//
//	m.text(8, "holder", &v.Holder)
//
// 8 is the tag and text the type. Types are those of the table above, and
//
//	flag       nothing: it is 1 if its tag is there
//	moment     wall; it is none if its tag is not there
//	oneOf      one byte; that of an enumeration without a 0 must be there
//	mayText    text, which may be empty if its tag is there
//	inner      unsigned length of the body; a message in it, with one field at least
//	maybe      the same, which may have no fields
//	several    unsigned count, 1 at least; for each of them the length of its body, and a
//	           message in it
//
// # Log entry
//
//	format     unsigned, 2
//	level      unsigned, 1
//	term       unsigned
//	stamp      time
//	wall       wall
//	commands   unsigned; how many follow, at most 8,192
//
// and for each command
//
//	kind       unsigned; the number of the verb in internal/core/command
//	length     unsigned; bytes of the body, at most 1 MiB
//	body       a message: see message.command
//
// and nothing more. An entry has at most 4 MiB. A command may have an origin, of kind 0, which
// stands before it, in a frame of the same shape, and is not counted; and so may it have
// an asker, of kind 127, which stands behind the origin.
//
// # Snapshot
//
//	magic      the line "leasehold snapshot", with its newline
//	format     unsigned, 2
//	level      unsigned, that of the state
//
// and for each record, in the order of core.State.Pieces,
//
//	kind       unsigned
//	length     unsigned; bytes of the body, at most 4 MiB
//	body       by kind; in all but 1, 14, 17, 21 to 27 and 50, first a text namespace, which is empty
//	           if it is that of the record before, and only then
//
// and nothing after the record of kind 0.
//
//	kind  record         body
//	   0  end            unsigned count of the records before it; four bytes, highest
//	                     first: the CRC-32C of everything before these four
//	   1  head           time now, wall, unsigned node, text boot, duration offset,
//	                     unsigned idle sequence, unsigned alarm order,
//	                     unsigned… raised by kind of alarm, without the last zeros
//	   2  namespace      unsigned token, unsigned revision, unsigned arrivals,
//	                     unsigned lost revision, unsigned lost n
//	   3  session        text id, duration ttl, labels, wall opened, time expires,
//	                     unsigned sequence, unsigned gap, touched?
//	   4  resource       text path, text claim, signed waiting, unsigned idle, more?
//	   5  claim          text id, text resource, text holder, text session,
//	                     duration ttl, unsigned token, time since, wall since,
//	                     unsigned revision, time expires, unsigned slots,
//	                     unsigned gap, unsigned long, flag overdue,
//	                     flag native, wait?, terms?
//	   6  ended claim    text id, text resource, text holder, unsigned token, how,
//	                     time at, text next
//	   7  ended session  text id, how, time at
//	   8  outcome        text key, text subject, time at, lease?, session?, lease… also,
//	                     waiter?, definition?, error?
//	   9  event          unsigned revision, unsigned n, kind, how or 0, moment at,
//	                     moment until, text resource, text id, text holder,
//	                     unsigned token, text session, text by, text reason;
//	                     if the kind is put or deleted: record? now, record? before;
//	                     if it is ended or changed: hold?;
//	                     if it is alarmed or alarm cleared: alarm kind, before these;
//	                     text foreign
//	  10  record         text path, value, unsigned create, unsigned mod,
//	                     unsigned version, text session, unsigned token,
//	                     text lease
//	  11  outcome        as 8, and then record?, txn?; one of them is there
//	  12  definition     as above
//	  13  alarm          alarm kind, text resource, text id, text holder,
//	                     unsigned token, text session, unsigned order, wall since,
//	                     time last, wall last, signed count, text text, signed limit;
//	                     flag quiet
//	  14  restored       unsigned base, wall of the backup, duration quarantine,
//	                     time until, flag over, text namespace, text path
//	  15  shelf          text path, signed keep, time deleted, wall written or 0,
//	                     text holder
//	  16  version        text path, value, unsigned revision, unsigned create,
//	                     unsigned version, moment written, text holder, text session,
//	                     unsigned token, flag deleted
//	  17  totals         always; caps, flag set, unsigned token, unsigned revision,
//	                     text swept
//	  18  namespace changed
//	                     as 2, and then time changed, which is not 0
//	  19  withdrawn id   text session, text id
//	  20  chore          chore kind, text name, unsigned order, text path, left?
//	  21  policy         unsigned revision
//	  22  token, 23 role, 24 binding, 25 quota, 26 issuer, 27 certificate
//	                     as below
//	  28  owned session  as 3, owner
//	  29  claim owner    text id, owner
//	  30  owned ended claim
//	                     as 6, owner
//	  31  owned ended session
//	                     as 7, owner
//	  32  record owner   text path, owner
//	  37  mirror         text resource, text prefix
//	  38  pool unit      text pool, text host, text name, labels, text unfit,
//	                     text drained, flag removed, text holder, time freed
//	  39  select claim   as 5, select
//	  40  limits definition
//	                     as 12, limit…, of which there is one
//	  41  limits outcome as 8, limit… of the definition, of which there is one
//	  42  kind           text resource, text name, text recent
//	  43  task           text path, task state (1 todo, 2 doing, 3 done, 4 failed),
//	                     signed priority, signed attempts, signed max attempts, text lease,
//	                     text holder, unsigned token, text result, moment changed,
//	                     unsigned order
//	  44  task claim     as 5, of a task or of who waits for one
//	  46  unit use       text pool, text unit, time at, signed percent,
//	                     signed memory, (signed pid, text user, text name)…, time idle,
//	                     time asked, duration busy, duration unused
//	  47  idle definition
//	                     as 12, limit…, duration idle, duration idle release; one
//	                     of the two is not 0
//	  48  idle outcome   as 8, with what 47 adds to the definition
//	  49  used event     as 9, duration busy, duration idle of the hold, of which
//	                     one is not 0, owner?
//	  50  calendar       wall date, if there is a record of kind 51
//	  51  reservation    text id, text resource, text holder, text reason,
//	                     unsigned slots, select?, wall from, wall until, text series,
//	                     owner?, text… units, flag told, flag begun, wall claim by or 0,
//	                     text lease, wall over or 0, text why
//	  52  series         text id, text resource, text holder, text reason,
//	                     unsigned slots, select?, rule, wall expanded, owner?
//	  53  reserved claim as 5, select?, text reservation
//	  54  start definition
//	                     as 12, limit…, duration idle, duration idle release,
//	                     at start, which is not 0
//	  55  start outcome  as 8, and then of the definition as in 54
//	  60  backfill definition
//	                     as 54, in which at start may be 0: with backfill
//	  61  backfill outcome
//	                     as 8, and then of the definition as in 60
//
//	rule                 text zone, days (bit 0 is Sunday), duration at, duration length,
//	                     moment until
//	at start             0 wait, 1 warn, 2 end
//	select               text where, flag spread, text… units
//	limit                by (0 holder, 1 label, 2 prefix), text name, signed most
//	token                text id, text hash, text principal, text… groups,
//	                     text description, wall created, text created by, wall expires or
//	                     0, wall used or 0
//	role                 text name, unsigned any, unsigned own, flag end on revoke
//	binding              text name, text role, text principal, text group,
//	                     text namespace, text prefix, text holders
//	quota                text principal, text namespace, signed leases, sessions, waiters,
//	                     records, bytes, watches, requests, renewals
//	issuer               text name, text url, text… audiences, text keys, text principal,
//	                     rule… groups
//	rule                 text claim, text value, text group
//	certificate          text name, text san, text principal, text… groups
//	caps                 signed leases, signed sessions, signed waiters,
//	                     signed namespaces
//	definition           text path, signed capacity, text… units, duration default ttl,
//	                     duration largest ttl, duration hold limit, duration grace,
//	                     duration expected, unclean, unsigned revision
//	owner                text principal, which is not empty, text group
//
//	left                 duration ttl, unsigned gap, how, time at, signed leases,
//	                     text resource, text holder
//	txn                  flag succeeded, unsigned revision, result…
//	result               record?, signed deleted, lease?, lease… also,
//	                     waiter?, txn? nested
//	touched              unsigned interventions, text… intervened
//	ending               text id, text holder, unsigned token, how, text by,
//	                     text reason, wall, text foreign, duration ttl
//	hold                 if the kind is changed: text id, text holder, unsigned token;
//	                     then moment since, moment until, duration waited
//	more                 ending? last, rest…, shares?, usual?
//	rest                 unsigned slots, text… units, time until, ending after
//	shares               signed capacity, unit…
//	unit                 text name, text holder, time freed
//	wait                 time until, signed priority, unsigned order, text… with
//	usual                text holds, text waits, time lost, time lost before
//	terms                text reason, labels, text party, duration grace,
//	                     duration hold limit, duration expected, time break at,
//	                     text break by, text break reason, text… units,
//	                     ending? after, duration waited, wall changed or 0;
//	                     text foreign, flag may expire, text door,
//	                     text note, wall noted or 0, face?
//	face                 text path, flag stays, flag made
//	lease                text namespace, text resource, text id, text holder, labels,
//	                     text reason, text session, state, unsigned token,
//	                     unsigned floor, signed slots, text… units, duration ttl,
//	                     duration hold limit, duration remaining,
//	                     moment acquired, moment expires, moment available at,
//	                     unsigned revision, shown ending? after,
//	                     unsigned interventions, text foreign, text door, text note,
//	                     moment noted
//	shown ending         as ending, with a moment instead of wall
//	session              text namespace, text id, duration ttl, labels,
//	                     duration remaining, moment opened, moment expires,
//	                     signed claims, unsigned interventions,
//	                     text… intervened
//	waiter               text namespace, text resource, text id, text holder, labels,
//	                     text reason, text session, signed slots, signed priority,
//	                     signed position, moment since, moment until,
//	                     duration forecast, text foreign
//	error                code, text message, lease?, signed waiting, signed position,
//	                     duration forecast, step… cycle
//	step                 text holder, text resource
package wire
