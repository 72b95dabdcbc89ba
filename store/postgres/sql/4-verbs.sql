create function @schema@.renew(p_namespace bytea, p_names bytea[], p_ids bytea[], p_patience integer)
returns setof @schema@.answer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	u record;
	r @schema@.resources;
	m @schema@.marks;
	a @schema@.answer;
	t timestamptz;
	done bigint[] := '{}';
begin
	perform @schema@.enter();
	if p_patience > 0 then
		perform set_config('lock_timeout', p_patience || 'ms', true);
		perform 1 from @schema@.resources where namespace = p_namespace and name = any (p_names)
		order by no for no key update;
	end if;
	-- Sorted, so that two callers never wait for each other; and one row that somebody has locked must not
	-- cost the other leases.
	for u in
		select x.no, w.id, w.i from unnest(p_names, p_ids) with ordinality as w (name, id, i)
		join @schema@.resources x on x.namespace = p_namespace and x.name = w.name
		order by x.no for no key update of x skip locked
	loop
		select * into r from @schema@.resources where no = u.no;
		t := clock_timestamp();
		r := @schema@.settle(r, t);
		if r.id = u.id then
			update @schema@.resources set deadline = t + @schema@.span(ttl) where no = r.no returning * into r;
			a := @schema@.describe('granted', r, t);
		else
			select * into m from @schema@.marks where resource = r.no and id = u.id;
			a := case when found then @schema@.recall('lost', m, r.name, t) else @schema@.describe('unknown', r, t) end;
		end if;
		a.n := u.i;
		done := done || u.i;
		return next a;
	end loop;
	t := clock_timestamp();
	for u in
		select w.i, x.no from unnest(p_names) with ordinality as w (name, i)
		left join @schema@.resources x on x.namespace = p_namespace and x.name = w.name
		where w.i <> all (done)
	loop
		a := null;
		a.verdict := case when u.no is null then 'unknown' else 'busy' end;
		a.now := t;
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
