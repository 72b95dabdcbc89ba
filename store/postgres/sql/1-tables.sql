-- Tables of the lease store. Names and ids are bytes, so that neither the encoding of the database nor
-- its collation matters. What people read is JSON in ASCII. Durations are microseconds.

create table @schema@.namespaces (
	namespace bytea primary key,
	floor     bigint not null -- the largest token of all resources whose rows were removed
);

-- Which server this is. After a failover or a restore it is another one, or on another timeline, and
-- grants of the old one may be missing here.
create table @schema@.witness (
	one      boolean primary key default true check (one),
	system   bigint not null,
	timeline text not null,
	since    timestamptz not null, -- no new grants until max_ttl has passed since then
	max_ttl  bigint not null
);

insert into @schema@.witness (system, timeline, since, max_ttl)
select system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), '-infinity', 0
from pg_control_system();

create table @schema@.resources (
	no        bigint generated always as identity primary key,
	namespace bytea not null,
	name      bytea not null,
	last      bigint not null default 0, -- the largest token so far

	id        bytea, -- of the lease; null: nobody holds it
	token     bigint,
	ttl       bigint,
	acquired  timestamptz,
	deadline  timestamptz, -- when it ends unless it is renewed
	breaks    timestamptz, -- when an operator's break ends it, renewed or not
	broken    json,        -- by whom and why
	note      json,        -- holder, labels, reason
	value     bytea,

	ended     bytea,       -- id of the lease before
	queued    bigint not null default 0, -- the number of the last waiter
	touched   timestamptz not null,      -- when anything but a renewal happened

	unique (namespace, name),
	-- With the token in a unique index the database itself lets no update change it while a transaction
	-- is fenced by it (FOR KEY SHARE).
	unique (no, token)
) with (fillfactor = 60);

create index on @schema@.resources (touched);

create table @schema@.waiters (
	resource bigint not null,
	n        bigint not null, -- given under the lock of the resource's row: the order of arrival
	id       bytea not null,
	deadline timestamptz not null, -- unless it asks again
	since    timestamptz not null,
	note     json,
	primary key (resource, n),
	unique (resource, id)
) with (fillfactor = 60);

-- Ids that ended. They are never granted again.
create table @schema@.marks (
	resource bigint not null,
	id       bytea not null,
	how      integer not null,
	token    bigint,
	ttl      bigint,
	note     json,
	broken   json,
	at       timestamptz not null,
	until    timestamptz not null, -- may be removed after it
	primary key (resource, id)
);

create index on @schema@.marks (until);

create type @schema@.answer as (
	verdict  text,
	now      timestamptz,
	no       bigint,
	name     bytea,
	id       bytea,
	token    bigint,
	ttl      bigint,
	remains  bigint,
	acquired timestamptz,
	deadline timestamptz,
	breaks   timestamptz,
	note     json,
	value    bytea,
	how      integer,
	ended    timestamptz,
	broken   json,
	waiting  bigint,
	position bigint,
	n        bigint, -- the number of the waiter; of a renewal, the place in the request
	queue    json
);
