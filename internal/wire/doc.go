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
// out. The feature level says which kinds, fields and enumeration values there are: a
// new one needs a new level, since a server that ignored what it does not know would
// come to another state than its peers. A server that meets a newer format, level or
// kind stops with [ErrUnknown]; bytes that no server wrote are [ErrMalformed]. The
// files in testdata/golden show each layout byte by byte, and hold it in place.
//
//	format 1, level 1   the first
//
// An entry has the least level that its commands need; a snapshot has that of its state, the
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
//	value      one byte, 0; a text. In snapshots and where it is said,
//	           also one byte, 1; a large
//	large      32 bytes, the SHA-256 of bytes that are kept elsewhere; unsigned, how many
//	           they are
//	how, kind, alarm kind, state, code, unclean, what, relation, do, pick, order
//	           one byte; the number that the dictionary or the core gives to the value
//	X…         unsigned count; the fields of each X
//	X?         flag; if 1, the fields of X
//
// # Log entry
//
//	format     unsigned, 1
//	level      unsigned, 1
//	term       unsigned
//	stamp      time
//	wall       wall
//	commands   unsigned; how many follow, at most 8,192
//
// and for each command
//
//	kind       unsigned
//	length     unsigned; bytes of the body, at most 1 MiB
//	body       by kind
//
// and nothing more. An entry has at most 4 MiB. A command may have an origin, which
// stands before it, in a frame of the same shape, and is not counted; and so may it have
// an asker, which stands behind the origin.
//
//	kind  command        body
//	   0  origin         text actor, text address, text door; not all of them empty
//	   1  open session   text namespace, text id, duration ttl, labels, request
//	   2  renew session  text namespace, text id
//	   3  close session  text namespace, text id, request
//	   4  acquire        text namespace, text resource, text id, signed slots,
//	                     signed capacity, item… also, text holder, text party, labels,
//	                     text reason, duration ttl, pick, text session, duration wait,
//	                     duration grace, duration hold limit, signed priority, request
//	   5  renew          text namespace, text id
//	   6  release        text namespace, text id, request
//	   7  change         text namespace, text id, text holder, text new id, request
//	   8  break          text namespace, text id, text resource, unsigned token,
//	                     duration period, flag remains, text by, text reason, request
//	  26  break exact    as 8, flag all, flag waiting
//	   9  tick           nothing
//	  10  lead           unsigned node, text boot, duration offset
//	  11  put record     text namespace, text path, value, text session,
//	                     unsigned if revision, flag if absent, fence, request
//	  12  delete record  text namespace, text path, flag range, text to,
//	                     unsigned if revision, fence, request
//	  13  txn            text namespace, compare… if, op… then, op… else, request
//	  14  ask            text namespace, text resource, text by, text message, request
//	  15  move           text namespace, text id, signed priority, text by,
//	                     text reason, request
//	  16  define         text namespace, definition, text by, text reason, request
//	  17  undefine       text namespace, text path, text by, text reason, request
//	  18  acknowledge    text namespace, text resource, unsigned token, text by,
//	                     text reason, request
//	  19  put version    as 11, with a value or a large, and after it
//	                     unsigned from, signed keep; one of them is not as in 11
//	  20  txn versions   as 13, with this in its ops; one of them is not as in 13
//	  21  set caps       caps, flag if unset, text by, text reason
//	  22  withdraw       text namespace, text id, text session, flag withdraw,
//	                     request; one of the two is not as in 6
//	  23  acquire foreign
//	                     as 4, and then text foreign, flag may expire; one of
//	                     them is not empty
//	  24  txn foreign    as 20, with a text foreign and a flag may expire after
//	                     each acquire, and one of them is not empty; its values may be
//	                     as in 13
//	  25  change foreign as 7, and then text foreign, which is not empty
//	  27  define change  as 16, and then unsigned fields, flag keep slots,
//	                     unsigned if revision; one of them is not 0
//	  28  abandon session
//	                     as 3, for a holder that died
//	  29  end quarantine unsigned base, text by, text reason
//	  30  renew note     as 5, and then text note, which may be empty
//	  31  acknowledge alarm
//	                     text namespace, alarm kind, text resource, text id,
//	                     text session, unsigned order, text by, text reason, request
//	  32  put reason     as 19, whose value may be as in 11, with text by and text
//	                     reason before the request; one of the two is not empty
//	  33  change about   as 25, whose foreign may be empty, and then text holder,
//	                     text reason, labels
//	  34  raise tokens   text namespace, unsigned above, text by, text reason
//	  35  change access  text… tokens, text… roles, text… bindings, text… quotas,
//	                     text… issuers, text… certificates to remove; token…, role…,
//	                     binding…, quota…, issuer…, certificate…, flag replace, flag off,
//	                     unsigned if revision, text by, text reason
//	  36  asker          no command: flag system; if 0, text principal,
//	                     text… groups, text token
//
//	  37  put link       as 32, whose by and reason may be empty, and after the
//	                     request link?, flag keep link; one of the two is there
//	  38  txn nested     as 24, in which nothing need be foreign, with a flag range and
//	                     a text to after each compare and what is new after each op; one
//	                     of these is there. No list has more than 128 parts
//	  39  acquire select as 23, in which nothing need be foreign, then select?, and
//	                     select? for each of the further resources; one of them is there
//	  40  define limits  as 27, limit…, of which there is one
//	  41  set units      text namespace, text resource, text host, host unit…,
//	                     text by, text reason, request
//	  42  drain          text namespace, text resource, text… units, text why,
//	                     text by, request
//	  50  acquire unattended
//	                     as 23, in which nothing need be foreign and pick is 3, then
//	                     select?, and select? for each of the further resources
//	  52  put task       text namespace, text path, text value, signed priority,
//	                     signed attempts, text by, request
//	  53  finish task    text namespace, text id, unsigned token, flag failed,
//	                     text result, text session, request
//	  54  acquire task   as 23, in which nothing need be foreign
//	  47  report use     text namespace, text resource, text host, unit report…,
//	                     text by, request
//	  48  define idle    as 27, limit…, duration idle, duration idle release; one
//	                     of the two is not 0
//	  43  reserve        text namespace, text id, text resource, signed slots,
//	                     select?, text holder, text reason, wall from or 0,
//	                     duration length, rule?, wall… starts, wall after or 0,
//	                     wall to or 0, request
//	  44  cancel reservation
//	                     text namespace, text id, text by, text reason, request
//	  45  acquire reserved
//	                     as 23, then select? of the first resource and of each of
//	                     the others, text reservation, which is not empty
//	  46  define start   as 27, limit…, duration idle, duration idle release,
//	                     at start, which is not 0
//	  57  define backfill
//	                     as 46, in which at start may be 0: with backfill
//	  58  tick short     nothing: a tick while room is short on the disk of a server
//
//	rule                 text zone, days (bit 0 is Sunday), duration at, duration length,
//	                     moment until
//	at start             0 wait, 1 warn, 2 end
//	select               text where, flag spread, text… units
//	limit                by (0 holder, 1 label, 2 prefix), text name, signed most
//	host unit            text name, labels, text unfit
//	unit report          text name, signed percent, signed memory, process…, text unfit
//	process              signed pid, text user, text name, text lease
//
//	link                 text resource, text id, text holder, labels, text reason,
//	                     text foreign, duration ttl, duration grace, flag wait,
//	                     flag may expire, flag stay, text mirror, flag take
//	new                  link?, flag keep link, flag keep value, flag keep session,
//	                     flag before, order, flag descend, unsigned min create,
//	                     unsigned max create, unsigned min mod, unsigned max mod, nested?
//	nested               compare… if, op… then, op… else; at most 128 deep
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
//	item                 text resource, text id, signed slots, signed capacity
//	definition           text path, signed capacity, text… units, duration default ttl,
//	                     duration largest ttl, duration hold limit, duration grace,
//	                     duration expected, unclean, unsigned revision
//	fence                text lease, unsigned token
//	compare              what, relation, text path, unsigned number, text text
//	op                   do, text path, flag range, text to, value, text session,
//	                     signed most, flag keys only, flag count, acquire?, text id
//	request              text key, text session, unsigned sequence
//
// # Snapshot
//
//	magic      the line "leasehold snapshot", with its newline
//	format     unsigned, 1
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
//	                     as in command 35
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
