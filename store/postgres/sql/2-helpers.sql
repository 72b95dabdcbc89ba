-- Functions that the verbs share. They run with the rights and the search path of the verb.

create function @schema@.version() returns integer language sql as 'select 1';

create function @schema@.enter() returns void language plpgsql as $$
begin
	if pg_is_in_recovery() then
		raise exception 'this server is a standby' using errcode = '25006';
	end if;
	-- Only there each statement sees what was committed before it began, such as while it waited for a lock.
	if current_setting('transaction_isolation') <> 'read committed' then
		raise exception 'leases need the isolation level read committed' using errcode = '25001';
	end if;
	-- A SET of the function would end before the commit.
	if current_setting('synchronous_commit') <> 'remote_apply' then
		perform set_config('synchronous_commit', 'on', true);
	end if;
	-- A role may have settings that hide the warning of a commit that is not safe, or that change how
	-- answers are written.
	if current_setting('client_min_messages') = 'error' then
		perform set_config('client_min_messages', 'warning', true);
	end if;
	if current_setting('datestyle') not like 'ISO%' then
		perform set_config('datestyle', 'ISO', true);
	end if;
	if current_setting('bytea_output') <> 'hex' then
		perform set_config('bytea_output', 'hex', true);
	end if;
end $$;

create function @schema@.micros(t timestamptz) returns bigint language sql stable
as 'select floor(extract(epoch from t) * 1000000)::bigint';

create function @schema@.span(us bigint) returns interval language sql immutable
as $$ select us * interval '1 microsecond' $$;

-- lock returns the row of a resource, locked against everything but fenced transactions. It makes the row
-- if there is none, and looks again: the cleaner may have removed it while this function waited for it.
create function @schema@.lock(p_namespace bytea, p_name bytea) returns @schema@.resources language plpgsql as $$
declare
	r @schema@.resources;
begin
	loop
		select * into r from @schema@.resources where namespace = p_namespace and name = p_name for no key update;
		if found then
			return r;
		end if;
		insert into @schema@.resources (namespace, name, touched) values (p_namespace, p_name, clock_timestamp())
		on conflict (namespace, name) do nothing;
	end loop;
end $$;

-- finish ends the lease of a locked row.
create function @schema@.finish(r @schema@.resources, p_how integer, p_broken json, p_at timestamptz, t timestamptz)
returns @schema@.resources language plpgsql as $$
begin
	insert into @schema@.marks (resource, id, how, token, ttl, note, broken, at, until)
	values (r.no, r.id, p_how, r.token, r.ttl, r.note, p_broken, p_at, t + interval '10 minutes')
	on conflict (resource, id) do nothing;
	-- The token is left: only a grant changes it, and waits for fenced transactions.
	update @schema@.resources
	set id = null, ended = r.id, deadline = null, breaks = null, broken = null, note = null, value = null, touched = t
	where no = r.no returning * into r;
	return r;
end $$;

-- settle ends the lease of a locked row if its time is over.
create function @schema@.settle(r @schema@.resources, t timestamptz) returns @schema@.resources language plpgsql as $$
begin
	if r.id is null or least(r.deadline, r.breaks) > t then
		return r;
	end if;
	if r.breaks <= r.deadline then
		return @schema@.finish(r, 4, r.broken, r.breaks, t);
	end if;
	return @schema@.finish(r, 2, null, r.deadline, t);
end $$;

-- wake tells the first living waiter of a free resource.
create function @schema@.wake(r @schema@.resources, t timestamptz) returns void language plpgsql as $$
declare
	head bigint;
begin
	if r.id is not null then
		return;
	end if;
	select n into head from @schema@.waiters where resource = r.no and deadline > t order by n limit 1;
	if found then
		perform pg_notify(@channel@, r.no || ' ' || head);
	end if;
end $$;

-- describe returns the lease of a row.
create function @schema@.describe(p_verdict text, r @schema@.resources, t timestamptz) returns @schema@.answer
language plpgsql as $$
declare
	a @schema@.answer;
begin
	a.verdict := p_verdict;
	a.now := t;
	a.no := r.no;
	a.name := r.name;
	if r.id is not null then
		a.id := r.id;
		a.token := r.token;
		a.ttl := r.ttl;
		a.remains := @schema@.micros(least(r.deadline, r.breaks)) - @schema@.micros(t);
		a.acquired := r.acquired;
		a.deadline := least(r.deadline, r.breaks);
		a.breaks := r.breaks;
		a.broken := r.broken;
		a.note := r.note;
		a.value := r.value;
	end if;
	return a;
end $$;

-- recall returns how an id ended.
create function @schema@.recall(p_verdict text, m @schema@.marks, p_name bytea, t timestamptz) returns @schema@.answer
language plpgsql as $$
declare
	a @schema@.answer;
begin
	a.verdict := p_verdict;
	a.now := t;
	a.no := m.resource;
	a.name := p_name;
	a.id := m.id;
	a.token := m.token;
	a.ttl := m.ttl;
	a.note := m.note;
	a.how := m.how;
	a.ended := m.at;
	a.broken := m.broken;
	return a;
end $$;

-- held returns the lease in the way, with the place of a waiter.
create function @schema@.held(r @schema@.resources, p_n bigint, t timestamptz) returns @schema@.answer
language plpgsql as $$
declare
	a @schema@.answer;
begin
	a := @schema@.describe('held', r, t);
	a.n := p_n;
	select count(*), count(*) filter (where w.n <= p_n) into a.waiting, a.position
	from @schema@.waiters w where w.resource = r.no and (w.deadline > t or w.n = p_n);
	return a;
end $$;

-- quarantine returns until when nothing is granted, because this server may lack grants of the one before.
create function @schema@.quarantine(p_max_ttl bigint, t timestamptz) returns timestamptz language plpgsql as $$
declare
	w @schema@.witness;
	v_system bigint;
	v_timeline text := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
begin
	select system_identifier into v_system from pg_control_system();
	select * into w from @schema@.witness;
	if w.system is distinct from v_system or w.timeline is distinct from v_timeline then
		insert into @schema@.witness as x (system, timeline, since, max_ttl)
		values (v_system, v_timeline, t, p_max_ttl)
		on conflict (one) do update set system = v_system, timeline = v_timeline, since = t,
			max_ttl = greatest(x.max_ttl, p_max_ttl)
		where x.system <> v_system or x.timeline <> v_timeline;
		select * into w from @schema@.witness;
	elsif w.max_ttl < p_max_ttl then
		update @schema@.witness set max_ttl = p_max_ttl where max_ttl < p_max_ttl;
		w.max_ttl := p_max_ttl;
	end if;
	return w.since + @schema@.span(w.max_ttl);
end $$;
