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
// # Values
//
//	unsigned   groups of 7 bits, lowest first, the top bit of a byte set if more
//	           follow; in the fewest bytes. So are token, revision, and those of 8 or 32 bits
//	signed     as unsigned, of 0, -1, 1, -2, 2 … written as 0, 1, 2, 3, 4 … So is number
//	duration   signed; nanoseconds
//	time       signed; nanoseconds of cluster time
//	wall       signed; Unix nanoseconds. So are moment and date
//	text       unsigned length; so many bytes
//	labels     unsigned count; for each a text key and a text value, keys ascending,
//	           none empty, each once
//	names      unsigned count; so many texts
//	counts     unsigned count; so many unsigned. So are dates, of wall
//	large      32 bytes, the SHA-256 of bytes that are kept elsewhere; unsigned, how many
//	           they are
//	oneOf      one byte; the number that the dictionary or the core gives to the value
//
// # Messages
//
// The fields of a command, and of a record of a snapshot, are a message: for each field that is
// not zero its tag, one byte from 1 to 127, and its value. Tags ascend. A zero that is written
// and a tag that stands twice or out of order are malformed; a tag that no field has is from a
// newer server. The descriptions, one for both directions, are the list of all fields: those of
// commands in fields.go of internal/core/command, those of records in this package. In
//
//	m.Text(8, "holder", &v.Holder)
//
// 8 is the tag and text the type. A tag that is marked as aside is written without the mark.
// Types are those of the table above, and
//
//	flag       nothing: it is true if its tag is there
//	moment     none, if its tag is not there; so the first second of 1970 is written as 0
//	oneOf      must be there if the enumeration has no 0
//	name       text, which must be there
//	mayText    text, which may be empty if its tag is there
//	content    text, or a large with the tag behind that
//	inner      unsigned length of the body; a message in it, with one field at least
//	maybe      the same, which may have no fields
//	several    unsigned count, 1 at least; for each of them the length of its body, and a
//	           message in it. So are items
//	owner      maybe; equal ones are one value after reading
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
//	body       a message: see fields.go of core/command
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
//	kind       unsigned; its place in the table of kinds in snapshot_piece.go
//	length     unsigned; bytes of the body, of which size.go says how many there may be
//	body       if it belongs to a namespace, first the text of that, which is empty if it is
//	           that of the record before, and only then; a message: see snapshot_state.go
//
// and nothing after the record of kind 0, which has
//
//	count      unsigned; the records before it
//	checksum   four bytes, highest first: the CRC-32C of everything before them
//
// # Fields
//
// The types of the fields are as above. X? is a message that need not be there, and X… several.
//
//	kind  verb        fields
//	   0  origin      1 text actor, 2 text address, 3 text door
//	   1  open-session
//	                  1 text namespace, 2 text id, 3 duration ttl, 4 labels, 5 request
//	   2  renew-session
//	                  1 text namespace, 2 text id
//	   3  close-session
//	                  1 text namespace, 2 text id, 3 flag abandon, 4 request
//	   4  acquire     1 text namespace, 2 text resource, 3 text id, 4 signed slots,
//	                  5 signed capacity, 6 select?, 7 item… also, 8 text holder, 9 labels,
//	                  10 text reason, 11 duration ttl, 12 pick, 13 text session,
//	                  14 duration wait, 15 duration grace, 16 duration hold limit,
//	                  17 signed priority, 18 request, 19 text party, 20 text foreign,
//	                  21 flag may expire, 22 flag task, 23 text reservation
//	   5  renew       1 text namespace, 2 text id, 3 text? note
//	   6  release     1 text namespace, 2 text id, 3 request, 4 text session, 5 flag withdraw
//	   7  change      1 text namespace, 2 text id, 3 text holder, 4 text new id,
//	                  5 text foreign, 6 about?, 7 request
//	   8  break       1 text namespace, 2 text id, 3 text resource, 4 unsigned token,
//	                  5 flag all, 6 flag waiting, 7 duration period, 8 flag remains,
//	                  9 text by, 10 text reason, 11 request
//	   9  tick        1 flag short
//	  10  lead        1 unsigned node, 2 text boot, 3 duration offset
//	  11  put-record  1 text namespace, 2 text path, 3 text value, 4 large, 5 unsigned from,
//	                  6 signed keep, 7 text session, 8 unsigned if revision, 9 flag if absent,
//	                  10 fence, 11 text by, 12 text reason, 13 request, 14 link?,
//	                  15 flag keep link
//	  12  delete-record
//	                  1 text namespace, 2 text path, 3 flag range, 4 text to,
//	                  5 unsigned if revision, 6 fence, 7 request
//	  13  txn         1 text namespace, 2 compare… if, 3 op… then, 4 op… else, 5 request
//	  14  ask         1 text namespace, 2 text resource, 3 text by, 4 text message, 5 request
//	  15  move        1 text namespace, 2 text id, 3 signed priority, 4 text by,
//	                  5 text reason, 6 request
//	  16  define      1 text namespace, 2 definition, 3 text by, 4 text reason, 5 request,
//	                  6 unsigned fields, 7 flag keep slots, 8 unsigned if revision
//	  17  undefine    1 text namespace, 2 text path, 3 text by, 4 text reason, 5 request
//	  18  acknowledge
//	                  1 text namespace, 2 text resource, 3 unsigned token, 4 text by,
//	                  5 text reason, 6 request
//	  19  set-limits  1 caps, 2 flag if unset, 3 text by, 4 text reason
//	  20  end-quarantine
//	                  1 unsigned base, 2 text by, 3 text reason
//	  21  acknowledge-alarm
//	                  1 text namespace, 2 alarm kind kind, 3 text resource, 4 text id,
//	                  5 text session, 6 unsigned order, 7 text by, 8 text reason, 9 request
//	  22  raise-tokens
//	                  1 text namespace, 2 unsigned above, 3 text by, 4 text reason
//	  23  change-access
//	                  1 keys remove, 2 items put, 3 flag replace, 4 flag off,
//	                  5 unsigned if revision, 6 flag if none, 7 signed wall, 8 text by,
//	                  9 text reason, 10 declaration declared, 11 use… used
//	  24  set-units   1 text namespace, 2 text resource, 3 text host, 4 host unit… units,
//	                  5 text by, 6 text reason, 7 request
//	  25  drain       1 text namespace, 2 text resource, 3 text… units, 4 text why, 5 text by,
//	                  6 request
//	  26  report-use  1 text namespace, 2 text resource, 3 text host, 4 unit report… units,
//	                  5 text by, 6 request
//	  27  put-task    1 text namespace, 2 text path, 3 text value, 4 signed priority,
//	                  5 signed attempts, 6 text by, 7 request
//	  28  finish-task
//	                  1 text namespace, 2 text id, 3 unsigned token, 4 flag failed,
//	                  5 text result, 6 text session, 7 request
//	  29  reserve     1 text namespace, 2 text id, 3 text resource, 4 signed slots, 5 select?,
//	                  6 text holder, 7 text reason, 8 wall from, 9 duration length,
//	                  10 request, 11 rule?, 12 wall… starts, 13 wall after, 14 wall to
//	  30  cancel-reservation
//	                  1 text namespace, 2 text id, 3 text by, 4 text reason, 5 request
//	 127  asker       1 flag system, 2 text principal, 3 text… groups, 4 text token
//
//	kind  record      fields
//	   1  head        1 time now, 2 signed wall, 3 lead, 4 unsigned idle sequence,
//	                  5 unsigned alarm order, 6 unsigned… raised
//	   2  namespace   1 unsigned token, 2 unsigned revision, 3 unsigned arrivals,
//	                  4 unsigned lost revision, 5 unsigned lost n, 6 time changed
//	   3  session     1 text id, 2 duration ttl, 3 labels, 4 signed opened, 5 time expires,
//	                  6 unsigned sequence, 7 unsigned gap, 8 touched?, 9 owner?
//	   4  resource    1 text path, 2 text claim, 3 signed waiting, 4 unsigned idle, 5 more?
//	   5  claim       1 text id, 2 text resource, 3 text holder, 4 text session,
//	                  5 duration ttl, 6 unsigned token, 7 time since, 8 signed since wall,
//	                  9 unsigned revision, 10 time expires, 11 unsigned slots,
//	                  12 unsigned gap, 13 unsigned long, 14 flag overdue, 15 flag native,
//	                  16 wait?, 17 terms?
//	   6  ended claim
//	                  1 text id, 2 text resource, 3 text holder, 4 unsigned token, 5 how,
//	                  6 time at, 7 text next, 8 unsigned said, 9 owner?
//	   7  ended session
//	                  1 text id, 2 how, 3 time at, 4 owner?
//	   8  outcome     1 text key, 2 text subject, 3 time at, 4 lease?,
//	                  5 shown session? session, 6 lease… also, 7 waiter?, 8 definition?,
//	                  9 refusal? error, 10 record?, 11 txn answer? txn
//	   9  event       1 unsigned revision, 2 unsigned n, 3 kind, 4 how, 5 moment at,
//	                  6 moment until, 7 text resource, 8 text id, 9 text holder,
//	                  10 unsigned token, 11 text session, 12 text by, 13 text reason,
//	                  14 text foreign, 15 alarm kind alarm, 16 record?, 17 record? previous,
//	                  18 hold?, 19 owner?
//	  10  record      1 text path, 2 text value, 3 large, 4 unsigned create, 5 unsigned mod,
//	                  6 unsigned version, 7 text session, 8 unsigned token, 9 text lease
//	  11  definition  1 text path, 2 signed capacity, 3 text… units, 4 duration default ttl,
//	                  5 duration largest ttl, 6 duration hold limit, 7 duration grace,
//	                  8 duration expected, 9 unclean, 10 unsigned revision, 11 limit… limits,
//	                  12 duration idle, 13 duration idle release, 14 at start on reservation,
//	                  15 flag backfill
//	  12  alarm       1 alarm kind kind, 2 text resource, 3 text id, 4 text holder,
//	                  5 unsigned token, 6 text session, 7 unsigned order, 8 signed since wall,
//	                  9 time last, 10 signed last wall, 11 signed count, 12 text,
//	                  13 signed limit, 14 flag quiet
//	  13  restored    1 unsigned base, 2 signed wall, 3 duration quarantine, 4 time until,
//	                  5 flag over, 6 text space, 7 text path
//	  14  shelf       1 text path, 2 signed keep, 3 time deleted, 4 signed written,
//	                  5 text holder
//	  15  version     1 text path, 2 text value, 3 large, 4 unsigned revision,
//	                  5 unsigned create, 6 unsigned version, 7 moment written, 8 text holder,
//	                  9 text session, 10 unsigned token, 11 flag deleted
//	  16  totals      1 caps, 2 flag set, 3 unsigned token, 4 unsigned revision, 5 text swept
//	  17  withdrawn id
//	                  1 text session, 2 text id
//	  18  chore       1 chore kind, 2 text name, 3 unsigned order, 4 text path, 5 left?
//	  19  policy      1 unsigned revision, 2 declaration declared
//	  20  token       1 text id, 2 text hash, 3 text principal, 4 text… groups,
//	                  5 text description, 6 signed created wall, 7 text created by,
//	                  8 signed expires wall, 9 signed used wall
//	  21  role        1 text name, 2 unsigned any, 3 unsigned own, 4 flag end on revoke
//	  22  binding     1 text name, 2 text role, 3 text principal, 4 text group,
//	                  5 text namespace, 6 text prefix, 7 text holders
//	  23  quota       1 text principal, 2 text namespace, 3 signed leases, 4 signed sessions,
//	                  5 signed waiters, 6 signed records, 7 signed bytes, 8 signed watches,
//	                  9 signed requests, 10 signed renewals
//	  24  issuer      1 text name, 2 text url, 3 text… audiences, 4 text keys,
//	                  5 text principal, 6 claim rule… groups
//	  25  certificate
//	                  1 text name, 2 text san, 3 text principal, 4 text… groups
//	  26  claim owner
//	                  1 text id, 2 owner?
//	  27  record owner
//	                  1 text path, 2 owner?
//	  28  revocation  1 unsigned order, 2 text by, 3 text namespace, 4 text id
//	  29  loss        1 unsigned order, 2 text principal, 3 text group, 4 text namespace,
//	                  5 text prefix
//	  30  withdrawal  1 text by, 2 time at, 3 text namespace, 4 text resource,
//	                  5 signed priority, 6 unsigned order
//	  31  mirror      1 text resource, 2 text prefix
//	  32  pool unit   1 text pool, 2 text host, 3 text name, 4 labels, 5 text unfit,
//	                  6 text drained, 7 flag removed, 8 text holder, 9 time freed
//	  33  kind        1 text resource, 2 text name, 3 text recent
//	  34  task        1 text path, 2 task state state, 3 signed priority, 4 signed attempts,
//	                  5 signed max attempts, 6 text lease, 7 text holder, 8 unsigned token,
//	                  9 text result, 10 moment changed, 11 unsigned order
//	  35  unit use    1 text pool, 2 text unit, 3 time at, 4 signed percent, 5 signed memory,
//	                  6 stranger… strangers, 7 time idle, 8 time asked, 9 duration busy,
//	                  10 duration unused
//	  36  calendar    1 wall date
//	  37  reservation
//	                  1 text id, 2 text resource, 3 text holder, 4 text reason,
//	                  5 unsigned slots, 6 select?, 7 wall from, 8 wall until, 9 text series,
//	                  10 owner?, 11 text… units, 12 flag told, 13 flag begun,
//	                  14 wall claim by, 15 text lease, 16 wall over, 17 text why
//	  38  series      1 text id, 2 text resource, 3 text holder, 4 text reason,
//	                  5 unsigned slots, 6 select?, 7 rule, 8 wall expanded, 9 owner?
//	  39  quiet queue 1 text pool, 2 time until
//
//	message           fields
//	request           1 text request key, 2 text request session, 3 unsigned request sequence
//	select            1 text where, 2 flag spread, 3 text… units
//	item              1 text resource, 2 text id, 3 signed slots, 4 signed capacity, 5 select?
//	about             1 text about holder, 2 text about reason, 3 labels about labels
//	fence             1 text fence lease, 2 unsigned fence token
//	link              1 text link resource, 2 text link id, 3 text link holder,
//	                  4 labels link labels, 5 text link reason, 6 text link foreign,
//	                  7 duration link ttl, 8 duration link grace, 9 flag link wait,
//	                  10 flag link may expire, 11 flag link stay, 12 text link mirror,
//	                  13 flag link take
//	compare           1 what, 2 relation is, 3 text path, 4 unsigned number, 5 text,
//	                  6 flag compare range, 7 text compare to
//	op                1 do, 2 text path, 3 flag range, 4 text to, 5 text value, 6 large,
//	                  7 text session, 8 unsigned from, 9 signed keep, 10 signed most,
//	                  11 flag keys only, 12 flag count, 13 acquire?, 14 text id, 15 link?,
//	                  16 flag keep link, 17 flag keep value, 18 flag keep session,
//	                  19 flag before, 20 order by order, 21 flag descend,
//	                  22 unsigned min create, 23 unsigned max create, 24 unsigned min mod,
//	                  25 unsigned max mod, 26 nested?
//	caps              1 signed leases, 2 signed sessions, 3 signed waiters,
//	                  4 signed namespaces
//	keys              1 text… remove tokens, 2 text… remove roles, 3 text… remove bindings,
//	                  4 text… remove quotas, 5 text… remove issuers,
//	                  6 text… remove certificates
//	items             1 token… tokens, 2 role… roles, 3 binding… bindings, 4 quota… quotas,
//	                  5 issuer… issuers, 6 certificate… certificates
//	declaration       1 text file hash, 2 text server
//	use               1 text token, 2 signed wall
//	host unit         1 text name, 2 labels, 3 text unfit
//	unit report       1 text name, 2 signed percent, 3 signed memory, 4 process… processes,
//	                  5 text unfit
//	rule              1 text zone, 2 unsigned days, 3 duration at, 4 duration length,
//	                  5 moment until
//	touched           1 unsigned interventions, 2 text… intervened
//	owner             1 text principal, 2 text group
//	more              1 ending? last, 2 rest… rests, 3 shares?, 4 usual?
//	wait              1 time until, 2 signed priority, 3 unsigned order, 4 text… with
//	terms             1 text reason, 2 labels, 3 text party, 4 duration grace,
//	                  5 duration hold limit, 6 duration expected, 7 time break at,
//	                  8 text break by, 9 text break reason, 10 text… units, 11 ending? after,
//	                  12 duration waited, 13 signed changed wall, 14 text foreign,
//	                  15 flag may expire, 16 text door, 17 text note, 18 signed noted wall,
//	                  19 linked?, 20 select?, 21 flag task, 22 text reservation
//	lease             1 text namespace, 2 text resource, 3 text id, 4 text holder, 5 labels,
//	                  6 text reason, 7 text session, 8 state, 9 unsigned token,
//	                  10 unsigned floor, 11 signed slots, 12 text… units, 13 duration ttl,
//	                  14 duration hold limit, 15 duration remaining, 16 moment acquired,
//	                  17 moment expires, 18 moment available at, 19 unsigned revision,
//	                  20 shown ending? after, 21 unsigned interventions, 22 text foreign,
//	                  23 text door, 24 text note, 25 moment noted
//	shown session     1 text namespace, 2 text id, 3 duration ttl, 4 labels,
//	                  5 duration remaining, 6 moment opened, 7 moment expires,
//	                  8 signed claims, 9 unsigned interventions, 10 text… intervened
//	waiter            1 text namespace, 2 text resource, 3 text id, 4 text holder, 5 labels,
//	                  6 text reason, 7 text session, 8 signed slots, 9 signed priority,
//	                  10 signed position, 11 moment since, 12 moment until,
//	                  13 duration forecast, 14 text foreign
//	refusal           1 code, 2 text message, 3 lease? lease in the way, 4 signed waiting,
//	                  5 signed position, 6 duration forecast, 7 step… cycle
//	txn answer        1 flag succeeded, 2 unsigned revision, 3 result… results
//	hold              1 text hold id, 2 text hold holder, 3 unsigned hold token,
//	                  4 moment hold since, 5 moment hold until, 6 duration hold waited,
//	                  7 duration hold busy, 8 duration hold idle
//	limit             1 limit by by, 2 text name, 3 signed most
//	left              1 duration ttl, 2 unsigned gap, 3 how, 4 time at, 5 signed leases,
//	                  6 text resource, 7 text holder
//	claim rule        1 text claim, 2 text value, 3 text group
//	stranger          1 signed pid, 2 text user, 3 text name
//	nested            2 compare… if, 3 op… then, 4 op… else
//	process           1 signed pid, 2 text user, 3 text name, 4 text lease
//	ending            1 text id, 2 text holder, 3 unsigned token, 4 how, 5 text by,
//	                  6 text reason, 7 signed wall, 8 text foreign, 9 duration ttl
//	rest              1 unsigned slots, 2 text… units, 3 time until, 4 ending? after
//	shares            1 signed capacity, 2 unit… units
//	usual             1 text holds, 2 text waits, 3 time lost, 4 time lost before
//	linked            1 text linked path, 2 flag linked stays, 3 flag linked made
//	shown ending      1 text id, 2 text holder, 3 unsigned token, 4 how, 5 text by,
//	                  6 text reason, 7 moment at, 8 text foreign, 9 duration ttl
//	step              1 text holder, 2 text resource
//	result            1 record? result record, 2 signed deleted, 3 lease? result lease,
//	                  4 lease… result also, 5 waiter? result waiter,
//	                  6 txn answer? result nested
//	unit              1 text name, 2 text holder, 3 time freed
package wire
