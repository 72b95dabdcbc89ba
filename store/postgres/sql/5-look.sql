-- look returns the state of one row at a moment.
create function @schema@.look(r @schema@.resources, t timestamptz) returns @schema@.answer language plpgsql as $$
declare
	m @schema@.marks;
	a @schema@.answer;
begin
	if r.id is not null and least(r.deadline, r.breaks) > t then
		a := @schema@.describe(case when r.breaks is null then 'leased' else 'breaking' end, r, t);
	elsif r.id is not null then
		a := @schema@.describe('over', r, t);
		a.how := case when r.breaks <= r.deadline then 4 else 2 end;
		a.ended := a.deadline;
	else
		select * into m from @schema@.marks where resource = r.no and id = r.ended;
		a := case when found then @schema@.recall('over', m, r.name, t) else @schema@.describe('free', r, t) end;
	end if;
	select count(*) into a.waiting from @schema@.waiters where resource = r.no and deadline > t;
	if a.waiting > 0 then
		select json_agg(json_build_object('id', encode(w.id, 'hex'), 'note', w.note,
			'since', @schema@.micros(w.since), 'until', @schema@.micros(w.deadline)) order by w.n) into a.queue
		from (select * from @schema@.waiters where resource = r.no and deadline > t order by n limit 100) w;
	end if;
	return a;
end $$;

create function @schema@.read(p_namespace bytea, p_name bytea) returns setof @schema@.answer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	r @schema@.resources;
begin
	perform @schema@.enter();
	select * into r from @schema@.resources where namespace = p_namespace and name = p_name;
	if found then
		return next @schema@.look(r, clock_timestamp());
	end if;
end $$;

create function @schema@.list(p_namespace bytea, p_from bytea, p_to bytea, p_after bytea, p_limit integer)
returns setof @schema@.answer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	r @schema@.resources;
	t timestamptz := clock_timestamp();
begin
	perform @schema@.enter();
	for r in
		select * from @schema@.resources x
		where namespace = p_namespace and name >= p_from and name > p_after and (p_to is null or name < p_to)
		and (id is not null and least(deadline, breaks) > t
			or exists (select from @schema@.waiters w where w.resource = x.no and w.deadline > t))
		order by name limit p_limit
	loop
		return next @schema@.look(r, t);
	end loop;
end $$;

-- clean removes what nobody needs any more: rows of resources that were idle for ten minutes, and marks.
-- It skips what is locked. A function that waits for a row that it removes makes a new one; the floor of
-- the namespace keeps its tokens above those of the old row.
create function @schema@.clean(p_limit integer, p_age interval default '10 minutes') returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	r @schema@.resources;
	t timestamptz := clock_timestamp() - p_age;
	v_rows bigint := 0;
	v_marks bigint;
begin
	perform @schema@.enter();
	for r in
		select * from @schema@.resources x
		where touched < t and (id is null or least(deadline, breaks) < t)
		and not exists (select from @schema@.waiters w where w.resource = x.no and w.deadline >= t)
		order by touched limit p_limit for update skip locked
	loop
		insert into @schema@.namespaces as n (namespace, floor) values (r.namespace, r.last)
		on conflict (namespace) do update set floor = excluded.floor where n.floor < excluded.floor;
		delete from @schema@.waiters where resource = r.no;
		delete from @schema@.marks where resource = r.no;
		delete from @schema@.resources where no = r.no;
		v_rows := v_rows + 1;
	end loop;
	delete from @schema@.marks where (resource, id) in (
		select resource, id from @schema@.marks where until < t + interval '10 minutes'
		order by until limit p_limit for update skip locked);
	get diagnostics v_marks = row_count;
	return v_rows + v_marks;
end $$;

create function @schema@.shown(b bytea) returns text language plpgsql immutable as $$
begin
	return convert_from(b, 'UTF8');
exception when others then
	return encode(b, 'escape');
end $$;

-- For people. The note is shown whole, because PostgreSQL cannot take a text with U+0000 out of it. "over"
-- is a lease whose time is over, and that nobody has taken yet.
create view @schema@.leases as
select @schema@.shown(namespace) as namespace, @schema@.shown(name) as resource, @schema@.shown(id) as id,
	note, token, acquired, least(deadline, breaks) as expires,
	least(deadline, breaks) <= clock_timestamp() as over,
	(select count(*) from @schema@.waiters w where w.resource = r.no and w.deadline > clock_timestamp()) as waiting
from @schema@.resources r where id is not null;

revoke execute on all functions in schema @schema@ from public;
