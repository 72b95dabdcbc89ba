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
//	          level 2   states that were restored from a backup: record 14
//	          level 3   large values, and former versions of records: commands 19 and
//	                    20, records 15 and 16, values that are kept elsewhere
//	          level 4   a state that says its level: the rules by which it decides; releases
//	                    that withdraw: command 22; ids that were withdrawn: record 19;
//	                    breaks of all who share a resource, or of a waiter only: command 26;
//	                    how a waiter ends that needs more slots than there are; interventions;
//	                    work that was put off: record 20;
//	                    caps, and namespaces that are forgotten: command 21, records 17
//	                    and 18; events stand by namespace; ids of foreign protocols:
//	                    commands 23 to 25; the early end of a quarantine: command 29;
//	                    holders that say more about themselves: command 33;
//	                    notes with renewals: command 30; the door of a lease;
//	                    changes of parts of a definition: command 27; sessions that are
//	                    abandoned: command 28; who wanted a record and why: command 32;
//	                    alarms that somebody has looked at: command 31; leases
//	                    that may expire: commands 23 and 24; tokens that are raised
//	                    above those of another store: command 34; who may do what, who
//	                    asks and whose things are: commands 35 and 36, records 21 to 32;
//	                    records that stand for leases: command 37, record 37;
//	                    transactions in transactions, and searches in them: command 38;
//	                    pools over several hosts, and limits of their units: commands 39 to
//	                    42, records 38 to 41; tasks: commands 52 to 54, records 43 and 44;
//	                    how units are used, and rules for idle leases: commands 47 and 48,
//	                    records 46 to 49
//
// An entry has the least level that its commands need. Up to level 3 so has a snapshot, and a
// state that ever needed level 3 goes on needing it; from level 4 on it has that of its state.
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
//	value      one byte, 0; a text. From level 3 on, in snapshots and where it is said,
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
//	level      unsigned, 1; 3 if it has a command of level 3, and only then
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
//	  26  break exact    level 4; as 8, flag all, flag waiting
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
//	  19  put version    level 3; as 11, with a value or a large, and after it
//	                     unsigned from, signed keep; one of them is not as in 11
//	  20  txn versions   level 3; as 13, with this in its ops; one of them is not as in 13
//	  21  set caps       level 4; caps, flag if unset, text by, text reason
//	  22  withdraw       level 4; text namespace, text id, text session, flag withdraw,
//	                     request; one of the two is not as in 6
//	  23  acquire foreign
//	                     level 4; as 4, and then text foreign, flag may expire; one of
//	                     them is not empty
//	  24  txn foreign    level 4; as 20, with a text foreign and a flag may expire after
//	                     each acquire, and one of them is not empty; its values may be
//	                     as in 13
//	  25  change foreign level 4; as 7, and then text foreign, which is not empty
//	  27  define change  level 4; as 16, and then unsigned fields, flag keep slots,
//	                     unsigned if revision; one of them is not 0
//	  28  abandon session
//	                     level 4; as 3, for a holder that died
//	  29  end quarantine level 4; unsigned base, text by, text reason
//	  30  renew note     level 4; as 5, and then text note, which may be empty
//	  31  acknowledge alarm
//	                     level 4; text namespace, alarm kind, text resource, text id,
//	                     text session, unsigned order, text by, text reason, request
//	  32  put reason     level 4; as 19, whose value may be as in 11, with text by and text
//	                     reason before the request; one of the two is not empty
//	  33  change about   level 4; as 25, whose foreign may be empty, and then text holder,
//	                     text reason, labels
//	  34  raise tokens   level 4; text namespace, unsigned above, text by, text reason
//	  35  change access  level 4; text… tokens, text… roles, text… bindings, text… quotas,
//	                     text… issuers, text… certificates to remove; token…, role…,
//	                     binding…, quota…, issuer…, certificate…, flag replace, flag off,
//	                     unsigned if revision, text by, text reason
//	  36  asker          level 4, no command: flag system; if 0, text principal,
//	                     text… groups, text token
//
//	  37  put link       level 4; as 32, whose by and reason may be empty, and after the
//	                     request link?, flag keep link; one of the two is there
//	  38  txn nested     level 4; as 24, in which nothing need be foreign, with a flag range and
//	                     a text to after each compare and what is new after each op; one
//	                     of these is there. No list has more than 128 parts
//	  39  acquire select level 4; as 23, in which nothing need be foreign, then select?, and
//	                     select? for each of the further resources; one of them is there
//	  40  define limits  level 4; as 27, limit…, of which there is one
//	  41  set units      level 4; text namespace, text resource, text host, host unit…,
//	                     text by, text reason, request
//	  42  drain          level 4; text namespace, text resource, text… units, text why,
//	                     text by, request
//	  50  acquire unattended
//	                     level 4; as 23, in which nothing need be foreign and pick is 3, then
//	                     select?, and select? for each of the further resources
//	  52  put task       level 4; text namespace, text path, text value, signed priority,
//	                     signed attempts, text by, request
//	  53  finish task    level 4; text namespace, text id, unsigned token, flag failed,
//	                     text result, text session, request
//	  54  acquire task   level 4; as 23, in which nothing need be foreign
//	  47  report use     level 4; text namespace, text resource, text host, unit report…,
//	                     text by, request
//	  48  define idle    level 4; as 27, limit…, duration idle, duration idle release; one
//	                     of the two is not 0
//	  43  reserve        level 4; text namespace, text id, text resource, signed slots,
//	                     select?, text holder, text reason, wall from or 0,
//	                     duration length, rule?, wall… starts, wall after or 0,
//	                     wall to or 0, request
//	  44  cancel reservation
//	                     level 4; text namespace, text id, text by, text reason, request
//	  45  acquire reserved
//	                     level 4; as 23, then select? of the first resource and of each of
//	                     the others, text reservation, which is not empty
//	  46  define start   level 4; as 27, limit…, duration idle, duration idle release,
//	                     at start, which is not 0
//	  57  define backfill
//	                     level 4; as 46, in which at start may be 0: with backfill
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
//	level      unsigned, 1; 2 if there is a record of kind 14; 3 if the state ever had what
//	           came with that
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
//	                     unsigned sequence, unsigned gap; from level 4 on, touched?
//	   4  resource       text path, text claim, signed waiting, unsigned idle, more?
//	   5  claim          text id, text resource, text holder, text session,
//	                     duration ttl, unsigned token, time since, wall since,
//	                     unsigned revision, time expires, unsigned slots,
//	                     unsigned gap, unsigned long, flag overdue, from level 4 on
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
//	                     from level 4 on, text foreign
//	  10  record         text path, value, unsigned create, unsigned mod,
//	                     unsigned version, text session, unsigned token; from level 4 on,
//	                     text lease
//	  11  outcome        as 8, and then record?, txn?; one of them is there
//	  12  definition     as above
//	  13  alarm          alarm kind, text resource, text id, text holder,
//	                     unsigned token, text session, unsigned order, wall since,
//	                     time last, wall last, signed count, text text, signed limit;
//	                     from level 4 on, flag quiet
//	  14  restored       unsigned base, wall of the backup, duration quarantine,
//	                     time until, flag over, text namespace, text path
//	  15  shelf          level 3; text path, signed keep, time deleted, wall written or 0,
//	                     text holder
//	  16  version        level 3; text path, value, unsigned revision, unsigned create,
//	                     unsigned version, moment written, text holder, text session,
//	                     unsigned token, flag deleted
//	  17  totals         level 4, always; caps, flag set, unsigned token, unsigned revision,
//	                     text swept
//	  18  namespace changed
//	                     level 4; as 2, and then time changed, which is not 0
//	  19  withdrawn id   level 4; text session, text id
//	  20  chore          level 4; chore kind, text name, unsigned order, text path, left?
//	  21  policy         level 4; unsigned revision
//	  22  token, 23 role, 24 binding, 25 quota, 26 issuer, 27 certificate
//	                     level 4; as in command 35
//	  28  owned session  level 4; as 3, owner
//	  29  claim owner    level 4; text id, owner
//	  30  owned ended claim
//	                     level 4; as 6, owner
//	  31  owned ended session
//	                     level 4; as 7, owner
//	  32  record owner   level 4; text path, owner
//	  37  mirror         level 4; text resource, text prefix
//	  38  pool unit      level 4; text pool, text host, text name, labels, text unfit,
//	                     text drained, flag removed, text holder, time freed
//	  39  select claim   level 4; as 5, select
//	  40  limits definition
//	                     level 4; as 12, limit…, of which there is one
//	  41  limits outcome level 4; as 8, limit… of the definition, of which there is one
//	  42  kind           level 4; text resource, text name, text recent
//	  43  task           level 4; text path, task state (1 todo, 2 doing, 3 done, 4 failed),
//	                     signed priority, signed attempts, signed max attempts, text lease,
//	                     text holder, unsigned token, text result, moment changed,
//	                     unsigned order
//	  44  task claim     level 4; as 5, of a task or of who waits for one
//	  46  unit use       level 4; text pool, text unit, time at, signed percent,
//	                     signed memory, (signed pid, text user, text name)…, time idle,
//	                     time asked, duration busy, duration unused
//	  47  idle definition
//	                     level 4; as 12, limit…, duration idle, duration idle release; one
//	                     of the two is not 0
//	  48  idle outcome   level 4; as 8, with what 47 adds to the definition
//	  49  used event     level 4; as 9, duration busy, duration idle of the hold, of which
//	                     one is not 0, owner?
//	  50  calendar       level 4; wall date, if there is a record of kind 51
//	  51  reservation    level 4; text id, text resource, text holder, text reason,
//	                     unsigned slots, select?, wall from, wall until, text series,
//	                     owner?, text… units, flag told, flag begun, wall claim by or 0,
//	                     text lease, wall over or 0, text why
//	  52  series         level 4; text id, text resource, text holder, text reason,
//	                     unsigned slots, select?, rule, wall expanded, owner?
//	  53  reserved claim level 4; as 5, select?, text reservation
//	  54  start definition
//	                     level 4; as 12, limit…, duration idle, duration idle release,
//	                     at start, which is not 0
//	  55  start outcome  level 4; as 8, and then of the definition as in 54
//	  60  backfill definition
//	                     level 4; as 54, in which at start may be 0: with backfill
//	  61  backfill outcome
//	                     level 4; as 8, and then of the definition as in 60
//
//	owner                text principal, which is not empty, text group
//
//	left                 duration ttl, unsigned gap, how, time at, signed leases,
//	                     text resource, text holder
//	txn                  flag succeeded, unsigned revision, result…
//	result               record?, signed deleted, lease?, lease… also; from level 4 on,
//	                     waiter?, txn? nested
//	touched              unsigned interventions, text… intervened
//	ending               text id, text holder, unsigned token, how, text by,
//	                     text reason, wall; from level 4 on, text foreign, duration ttl
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
//	                     from level 4 on, text foreign, flag may expire, text door,
//	                     text note, wall noted or 0, face?
//	face                 text path, flag stays, flag made
//	lease                text namespace, text resource, text id, text holder, labels,
//	                     text reason, text session, state, unsigned token,
//	                     unsigned floor, signed slots, text… units, duration ttl,
//	                     duration hold limit, duration remaining,
//	                     moment acquired, moment expires, moment available at,
//	                     unsigned revision, shown ending? after; from level 4 on,
//	                     unsigned interventions, text foreign, text door, text note,
//	                     moment noted
//	shown ending         as ending, with a moment instead of wall
//	session              text namespace, text id, duration ttl, labels,
//	                     duration remaining, moment opened, moment expires,
//	                     signed claims; from level 4 on, unsigned interventions,
//	                     text… intervened
//	waiter               text namespace, text resource, text id, text holder, labels,
//	                     text reason, text session, signed slots, signed priority,
//	                     signed position, moment since, moment until,
//	                     duration forecast; from level 4 on, text foreign
//	error                code, text message, lease?, signed waiting, signed position,
//	                     duration forecast, step… cycle
//	step                 text holder, text resource
package wire
