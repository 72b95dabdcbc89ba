-- explain says why a lease was not renewed.
create function @schema@.explain(p_namespace bytea, p_name bytea, p_id bytea) returns @schema@.answer
language plpgsql as $$
declare
	r @schema@.resources;
	m @schema@.marks;
	t timestamptz;
begin
	select * into r from @schema@.resources where namespace = p_namespace and name = p_name
	for no key update skip locked;
	t := clock_timestamp();
	if not found then
		perform 1 from @schema@.resources where namespace = p_namespace and name = p_name;
		return @schema@.describe(case when found then 'busy' else 'unknown' end, r, t);
	end if;
	r := @schema@.settle(r, t);
	select * into m from @schema@.marks where resource = r.no and id = p_id;
	if found then
		return @schema@.recall('lost', m, p_name, t);
	end if;
	-- Its own lease is alive if the row was locked until now, or if it was named twice.
	return @schema@.describe(case when r.id = p_id then 'busy' else 'unknown' end, r, t);
end $$;

-- renew renews leases. Rows that somebody has locked are left out, unless there is patience for them.
create function @schema@.renew(p_namespace bytea, p_names bytea[], p_ids bytea[], p_patience integer)
returns setof @schema@.answer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	u record;
	a @schema@.answer;
	done bigint[] := '{}';
begin
	perform @schema@.enter();
	if p_patience > 0 then
		perform set_config('lock_timeout', p_patience || 'ms', true);
		perform 1 from @schema@.resources where namespace = p_namespace and name = p_names[1] for no key update;
	end if;
	-- Sorted, so that two callers never wait for each other. Each row is looked up by its name, whatever the
	-- planner believes about the size of the table. The clock is read for each row, after its lock.
	for a in
		with locked as materialized (
			select x.no, w.id, w.i
			from (select * from unnest(p_names, p_ids) with ordinality as v (name, id, i) order by name, i) w
			cross join lateral (
				select no from @schema@.resources where namespace = p_namespace and name = w.name
				for no key update skip locked) x
		), renewed as (
			update @schema@.resources x set deadline = clock_timestamp() + @schema@.span(x.ttl)
			from locked where x.no = locked.no and x.id = locked.id and least(x.deadline, x.breaks) > clock_timestamp()
			returning x.*, locked.i
		)
		select 'granted', deadline - @schema@.span(ttl), no, name, id, token, ttl,
			@schema@.micros(least(deadline, breaks)) - @schema@.micros(deadline) + ttl,
			acquired, least(deadline, breaks), breaks, note, null::bytea, null::integer, null::timestamptz, broken,
			null::bigint, null::bigint, i, null::json
		from renewed
	loop
		done := done || a.n;
		return next a;
	end loop;
	if cardinality(done) = cardinality(p_ids) then
		return;
	end if;
	for u in
		select * from unnest(p_names, p_ids) with ordinality as w (name, id, i) where i <> all (done) order by name, i
	loop
		a := @schema@.explain(p_namespace, u.name, u.id);
		a.n := u.i;
		return next a;
	end loop;
end $$;

-- leave ends a wait, and marks an id that is not known at all.
create function @schema@.leave(r @schema@.resources, p_id bytea, p_how integer, p_broken json, t timestamptz)
returns void language plpgsql as $$
declare
	v_note json;
begin
	delete from @schema@.waiters where resource = r.no and id = p_id returning note into v_note;
	if found and p_how = 1 then
		p_how := 8; -- withdrawn
	end if;
	insert into @schema@.marks as m (resource, id, how, note, broken, at, until)
	values (r.no, p_id, p_how, v_note, p_broken, t, t + interval '10 minutes')
	on conflict (resource, id) do update set until = excluded.until;
	update @schema@.resources set touched = t where no = r.no;
end $$;

-- unqueue ends a wait whose time is over. The id may ask again.
create function @schema@.unqueue(p_namespace bytea, p_name bytea, p_id bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	r @schema@.resources;
	t timestamptz;
begin
	perform @schema@.enter();
	r := @schema@.lock(p_namespace, p_name);
	t := clock_timestamp();
	r := @schema@.settle(r, t);
	delete from @schema@.waiters where resource = r.no and id = p_id;
	perform @schema@.wake(r, t);
end $$;

create function @schema@.release(p_namespace bytea, p_names bytea[], p_ids bytea[]) returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	u record;
	r @schema@.resources;
	t timestamptz;
begin
	perform @schema@.enter();
	for u in select * from unnest(p_names, p_ids) as w (name, id) order by name, id loop
		r := @schema@.lock(p_namespace, u.name);
		t := clock_timestamp();
		r := @schema@.settle(r, t);
		if r.id = u.id then
			r := @schema@.finish(r, 1, null, t, t);
		else
			perform @schema@.leave(r, u.id, 1, null, t);
		end if;
		perform @schema@.wake(r, t);
	end loop;
	return t;
end $$;

create function @schema@.break(p_namespace bytea, p_name bytea, p_id bytea, p_period bigint, p_broken json)
returns @schema@.answer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	r @schema@.resources;
	w @schema@.waiters;
	m @schema@.marks;
	a @schema@.answer;
	t timestamptz;
begin
	perform @schema@.enter();
	r := @schema@.lock(p_namespace, p_name);
	t := clock_timestamp();
	r := @schema@.settle(r, t);
	if r.id = p_id and p_period > 0 then
		if r.breaks is null or r.breaks > t + @schema@.span(p_period) then
			update @schema@.resources set breaks = t + @schema@.span(p_period), broken = p_broken, touched = t
			where no = r.no returning * into r;
		end if;
		return @schema@.describe('breaking', r, t);
	elsif r.id = p_id then
		a := @schema@.describe('broken', r, t);
		perform @schema@.wake(@schema@.finish(r, 4, p_broken, t, t), t);
		return a;
	end if;
	select * into w from @schema@.waiters where resource = r.no and id = p_id;
	if found then
		perform @schema@.leave(r, p_id, 4, p_broken, t);
		perform @schema@.wake(r, t);
		a.verdict := 'removed';
		a.now := t;
		a.id := p_id;
		a.note := w.note;
		return a;
	end if;
	select * into m from @schema@.marks where resource = r.no and id = p_id;
	if found then
		return @schema@.recall('lost', m, p_name, t);
	end if;
	return @schema@.describe('unknown', r, t);
end $$;

-- fence keeps a token's lease from being granted to anybody else until the caller's transaction ends. It
-- fails, and with it the transaction, if that lease has ended.
create function @schema@.fence(p_namespace bytea, p_name bytea, p_token bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	v_end timestamptz;
begin
	select least(deadline, breaks) into v_end from @schema@.resources
	where namespace = p_namespace and name = p_name and token = p_token and id is not null for key share;
	if not found or v_end <= clock_timestamp() then
		raise exception 'the lease with token % has ended', p_token using errcode = 'LH001';
	end if;
end $$;

create function @schema@.fence(p_namespace text, p_name text, p_token bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	perform @schema@.fence(convert_to(p_namespace, 'UTF8'), convert_to(p_name, 'UTF8'), p_token);
end $$;
