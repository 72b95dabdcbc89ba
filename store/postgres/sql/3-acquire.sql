-- peek answers, without a lock, a caller that has to wait anyway. It returns null if that is not sure.
create function @schema@.peek(p_namespace bytea, p_name bytea, p_id bytea, p_ttl bigint, p_wait boolean)
returns @schema@.answer language plpgsql as $$
declare
	r @schema@.resources;
	w @schema@.waiters;
	t timestamptz;
begin
	select * into r from @schema@.resources where namespace = p_namespace and name = p_name;
	t := clock_timestamp();
	if r.id is null or r.id = p_id or least(r.deadline, r.breaks) <= t then
		return null;
	end if;
	perform 1 from @schema@.marks where resource = r.no and id = p_id;
	if found then
		return null;
	end if;
	select * into w from @schema@.waiters where resource = r.no and id = p_id;
	if not found and not p_wait or w.deadline > t + @schema@.span(p_ttl * 2 / 3) then
		return @schema@.held(r, w.n, t);
	end if;
	return null;
end $$;

-- enqueue gives a waiter its number, or renews its deadline. It returns null if the caller does not wait.
create function @schema@.enqueue(r @schema@.resources, p_id bytea, p_ttl bigint, p_wait boolean, p_note json,
	t timestamptz) returns bigint language plpgsql as $$
declare
	v_n bigint;
begin
	update @schema@.waiters set deadline = t + @schema@.span(p_ttl) where resource = r.no and id = p_id
	returning n into v_n;
	if not found and p_wait then
		update @schema@.resources set queued = queued + 1, touched = t where no = r.no returning queued into v_n;
		insert into @schema@.waiters (resource, n, id, deadline, since, note)
		values (r.no, v_n, p_id, t + @schema@.span(p_ttl), t, p_note);
	end if;
	return v_n;
end $$;

-- first reports whether nobody alive waits before an id. Dead waiters at the head are removed.
create function @schema@.first(r @schema@.resources, p_id bytea, t timestamptz) returns boolean language plpgsql as $$
declare
	head @schema@.waiters;
begin
	loop
		select * into head from @schema@.waiters where resource = r.no order by n limit 1;
		if not found or head.id = p_id then
			return true;
		elsif head.deadline > t then
			return false;
		end if;
		delete from @schema@.waiters where resource = r.no and n = head.n;
	end loop;
end $$;

-- grant gives a locked, free resource to an id. It answers "fenced" while a transaction is fenced by the
-- lease before, and "quarantined" while this server may lack grants of the one before it.
create function @schema@.grant_to(r @schema@.resources, p_id bytea, p_ttl bigint, p_floor bigint, p_note json,
	p_value bytea, p_max_ttl bigint) returns @schema@.answer language plpgsql as $$
declare
	a @schema@.answer;
	t timestamptz := clock_timestamp();
	v_until timestamptz := @schema@.quarantine(p_max_ttl, t);
	v_floor bigint;
begin
	if p_max_ttl > 0 and v_until > t then
		a := @schema@.describe('quarantined', r, t);
		a.deadline := v_until;
		return a;
	end if;
	perform 1 from @schema@.resources where no = r.no for update skip locked;
	if not found then
		return @schema@.describe('fenced', r, t);
	end if;
	t := clock_timestamp(); -- after the last lock
	if r.last = 0 then
		-- A statement of its own: it sees the floor that the cleaner left, had there been a row before.
		select floor into v_floor from @schema@.namespaces where namespace = r.namespace;
	end if;
	v_floor := greatest(r.last + 1, @schema@.micros(t), v_floor + 1, p_floor + 1);
	if v_floor >= 9007199254740992 then
		return @schema@.describe('exhausted', r, t);
	end if;
	delete from @schema@.waiters where resource = r.no and id = p_id;
	update @schema@.resources set id = p_id, token = v_floor, last = v_floor, ttl = p_ttl, acquired = t,
		deadline = t + @schema@.span(p_ttl), breaks = null, broken = null, note = p_note, value = p_value, touched = t
	where no = r.no returning * into r;
	return @schema@.describe('granted', r, t);
end $$;

create function @schema@.acquire(p_namespace bytea, p_name bytea, p_id bytea, p_ttl bigint, p_wait boolean,
	p_floor bigint, p_note json, p_value bytea, p_max_ttl bigint) returns @schema@.answer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	r @schema@.resources;
	m @schema@.marks;
	a @schema@.answer;
	t timestamptz;
begin
	perform @schema@.enter();
	a := @schema@.peek(p_namespace, p_name, p_id, p_ttl, p_wait);
	if a.verdict is not null then
		return a;
	end if;
	r := @schema@.lock(p_namespace, p_name);
	t := clock_timestamp();
	r := @schema@.settle(r, t);
	select * into m from @schema@.marks where resource = r.no and id = p_id;
	if found then
		return @schema@.recall('lost', m, p_name, t);
	elsif r.id = p_id then
		return @schema@.describe('granted', r, t);
	elsif r.id is null and @schema@.first(r, p_id, t) then
		a := @schema@.grant_to(r, p_id, p_ttl, p_floor, p_note, p_value, p_max_ttl);
		if a.verdict <> 'fenced' then
			return a;
		end if;
	end if;
	return @schema@.held(r, @schema@.enqueue(r, p_id, p_ttl, p_wait, p_note, t), t);
end $$;
