"""What goes wrong on the way, at the server and at the hands of others."""

from __future__ import annotations

import threading
import time
import unittest
from typing import Callable, List, Tuple
from unittest import mock

import support
import leasehold
from leasehold import _clock
from support import until


class Faults(support.Case):
    def granted(self, resource: str) -> int:
        return sum(event["kind"] == "acquired" for event in self.server.events(resource))

    def test_the_answer_to_an_acquire_is_lost(self) -> None:
        proxy = self.proxy()
        proxy.lose_answers("/v1/acquire", 3)
        with self.client(proxy.url).hold(self.resource) as h:
            self.assertEqual(proxy.lost("/v1/acquire"), 3)
            self.assertEqual(self.server.holders(self.resource)[0]["id"], h.id)
        self.assertEqual(self.granted(self.resource), 1)

    def test_the_answer_after_a_wait_is_lost(self) -> None:
        proxy = self.proxy()
        first = self.client().acquire(self.resource)
        proxy.lose_answers("/v1/acquire", 1)
        got = []
        client = self.client(proxy.url)
        thread = threading.Thread(target=lambda: got.append(client.acquire(self.resource)))
        thread.start()
        until("it waits", lambda: self.server.status(self.resource)["waiting"] == 1)
        first.release()
        thread.join()
        self.assertEqual(proxy.lost("/v1/acquire"), 1)
        self.assertEqual(self.granted(self.resource), 2)
        self.assertEqual(self.server.holders(self.resource)[0]["token"], got[0].token)

    def test_the_answers_to_renewals_are_lost(self) -> None:
        proxy = self.proxy()
        with self.client(proxy.url, watch=False).hold(self.resource, ttl=3) as h:
            proxy.lose_answers("/v1/renew", 3)
            with self.assertLogs("leasehold"):
                until("answers were lost", lambda: proxy.lost("/v1/renew") == 3)
            failed = h._renew_at
            until("it was renewed", lambda: h._renew_at > failed and h._failures == 0)
            h.check()

    def test_the_answer_to_a_release_is_lost(self) -> None:
        proxy = self.proxy()
        client = self.client(proxy.url)
        h = client.acquire(self.resource)
        proxy.lose_answers("/v1/release", 2)
        h.release(support.PATIENCE)
        self.assertEqual(proxy.lost("/v1/release"), 2)
        with self.client().hold(self.resource, wait=0) as next_holder:
            next_holder.check()  # nothing that is still on its way releases it
        self.assertEqual(self.granted(self.resource), 2)

    def test_nothing_is_relied_on_that_may_have_ended(self) -> None:
        """A hold has ended when the server is asked to end it: the answer may never come."""
        proxy = self.proxy()
        client = self.client(proxy.url, watch=False)
        folder = self.resource + "/"
        verbs: List[Tuple[str, bytes, Callable[[leasehold.Task], None]]] = [
            ("release", b"POST /v1/release ", lambda task: task.release()),
            ("done", b"POST /v1/finish ", lambda task: task.done()),
            ("fail", b"POST /v1/finish ", lambda task: task.fail()),
            ("close", b"POST /v1/release ", lambda task: client.close()),
        ]
        for name, request, end in verbs:
            client.add_task(folder + name)
            claiming = client.claim(folder)
            task = claiming.__enter__()
            seen = []

            def look(data: bytes) -> None:
                if data.startswith(request):
                    seen.append(task.hold.remaining)

            proxy.see(look)
            end(task)
            until(f"{name} was asked", lambda: bool(seen))
            proxy.see(lambda data: None)
            self.assertEqual(seen[0], 0, name)
            with self.assertRaises(leasehold.LostError):
                task.check()

    def test_a_refusal_after_a_lost_answer(self) -> None:
        """The first try was granted and got no answer, the wait ends: nothing stays behind."""
        proxy = self.proxy()
        proxy.lose_answers("/v1/acquire", 1 << 30)
        with self.assertRaises(leasehold.LeaseholdError):
            self.client(proxy.url).acquire(self.resource, wait=0.5, ttl=600)
        until("it is free", lambda: not self.server.holders(self.resource))
        self.assertGreaterEqual(self.granted(self.resource), 1)

    def test_connections_lead_nowhere(self) -> None:
        """A router has forgotten them, and says nothing."""
        proxy = self.proxy()
        with self.client([proxy.url, self.server.url]).hold(self.resource, ttl=3) as h:
            client = h._client
            while client._servers._choose()[1].address.url != proxy.url:
                client._servers._leave(client._servers._turn)
            before = h._deadline
            until("it was renewed by the proxy", lambda: h._deadline > before)
            proxy.swallow(True)
            swallowed = h._deadline
            until("it was renewed by the other way", lambda: h._deadline > swallowed + 1)
            h.check()

    def test_a_server_is_gone_briefly(self) -> None:
        server = self.new_server()
        with self.client(server.url).hold(self.resource, ttl=10) as h:
            server.kill()
            with self.assertLogs("leasehold") as logs:
                until("renewals fail", lambda: any("renewed" in line for line in logs.output))
                server.start().ready()
                until("it was renewed", lambda: h._failures == 0)
            self.assertTrue(h.valid)
            self.assertEqual(server.holders(self.resource)[0]["token"], h.token)

    def test_a_server_is_gone_for_two_ttls(self) -> None:
        server, told = self.new_server(), []
        lost, granted, believed = threading.Event(), [], [0.0]

        def on_lost(e: leasehold.LostError) -> None:
            told.append(e)
            lost.set()

        def wait() -> None:
            other = self.client(server.url).acquire(self.resource, ttl=30)
            granted.append(_clock.now())
            other.release()

        with self.assertRaises(leasehold.LostError) as caught:
            with self.client(server.url).hold(self.resource, ttl=1, on_lost=on_lost) as h:
                waiter = threading.Thread(target=wait)
                waiter.start()
                until("another waits", lambda: server.status(self.resource)["waiting"] == 1)
                server.pause()
                self.addCleanup(server.resume)
                while h.valid:
                    believed[0] = _clock.now()
                self.assertTrue(lost.wait(support.PATIENCE))
                time.sleep(1)  # the second TTL
                server.resume()
                waiter.join()
                self.assertFalse(h.valid)
        self.assertEqual([e.how for e in told], ["expired"])
        self.assertEqual(caught.exception.how, "expired")
        self.assertLess(believed[0], granted[0])

    def test_beliefs_never_overlap(self) -> None:
        """A holder that is never renewed, and the next in the queue, again and again."""
        for _ in range(5):
            h = self.client(watch=False).acquire(self.resource, ttl=0.3)
            h._renew = lambda: time.sleep(0.01)  # type: ignore[method-assign]
            granted = []

            def wait() -> None:
                other = self.client().acquire(self.resource, ttl=30)
                granted.append(_clock.now())
                other.release()

            waiter = threading.Thread(target=wait)
            waiter.start()
            believed = _clock.now()
            while h.valid:
                believed = _clock.now()
            waiter.join()
            self.assertLess(believed, granted[0])

    def test_a_loss_does_not_hide_the_blocks_own_exception(self) -> None:
        server = self.new_server()
        with self.assertRaises(KeyError):
            with self.client(server.url).hold(self.resource, ttl=0.5) as h:
                server.kill()
                h.wait_lost()
                raise KeyError

    def test_a_broken_lease_is_noticed_at_once(self) -> None:
        """By the watch: the next renewal would be ten minutes later."""
        told = []
        lost = threading.Event()

        def on_lost(e: leasehold.LostError) -> None:
            told.append(e)
            lost.set()

        with self.assertRaises(leasehold.LostError):
            with self.client().hold(self.resource, ttl=1800, on_lost=on_lost) as h:
                before = h._deadline
                until("it is watched", lambda: h._deadline > before)
                self.server.ask("/v1/break", {"id": h.id, "period": "0s", "by": "ann", "reason": "the demo"})
                self.assertTrue(lost.wait(support.PATIENCE))
        self.assertEqual((told[0].how, told[0].by, told[0].reason), ("broken", "ann", "the demo"))

    def test_a_broken_lease_is_noticed_by_a_renewal(self) -> None:
        with self.assertRaises(leasehold.LostError):
            with self.client(watch=False).hold(self.resource, ttl=2) as h:
                self.server.ask("/v1/break", {"id": h.id, "period": "0s", "by": "ann"})
                self.assertTrue(h.wait_lost(support.PATIENCE))

    def test_a_break_leaves_some_time(self) -> None:
        with self.client().hold(self.resource, ttl=1800) as h:
            before = h._deadline
            until("it is watched", lambda: h._deadline > before)
            self.server.ask("/v1/break", {"id": h.id, "period": "1m", "by": "ann"})
            until("the hold knows", lambda: h.remaining <= 60)
            self.assertTrue(h.valid)

    def test_somebody_gives_the_lease_to_another(self) -> None:
        with self.assertRaises(leasehold.LostError) as caught:
            with self.client().hold(self.resource, ttl=2) as h:
                self.server.ask("/v1/change", {"id": h.id, "holder": "bob"})
                self.assertTrue(h.wait_lost(support.PATIENCE))
        self.assertEqual((caught.exception.how, caught.exception.by), ("changed", "bob"))
        self.assertEqual(self.server.holders(self.resource)[0]["holder"], "bob")  # not released by us

    def test_an_operator_removes_a_waiter(self) -> None:
        client, errors = self.client(), []

        def wait() -> None:
            try:
                client.acquire(self.resource)
            except leasehold.LeaseholdError as e:
                errors.append(e)

        with client.hold(self.resource):
            thread = threading.Thread(target=wait)
            thread.start()
            waiter = until("it waits", lambda: self.server.status(self.resource).get("queue"))[0]
            self.server.ask("/v1/break", {"id": waiter["id"], "waiting": True, "by": "ann", "reason": "not now"})
            thread.join()
        self.assertIsInstance(errors[0], leasehold.LostError)
        self.assertEqual((errors[0].how, errors[0].by, errors[0].reason), ("broken", "ann", "not now"))

    def test_the_calendar_jumps(self) -> None:
        real = time.time
        with self.client().hold(self.resource, ttl=3) as h:
            for jump in (1e6, -1e6):
                with mock.patch("time.time", lambda: real() + jump):
                    before = h._deadline
                    until("it was renewed", lambda: h._deadline > before)
                    h.check()

    def test_a_callback_may_release(self) -> None:
        ended = threading.Event()

        def give_up(_: leasehold.LostError) -> None:
            with self.assertRaises(leasehold.LostError):
                h.release(timeout=1e6)  # it does not wait for itself
            ended.set()

        h = self.client(watch=False).acquire(self.resource, ttl=1, on_lost=give_up)
        self.server.ask("/v1/break", {"id": h.id, "period": "0s"})
        self.assertTrue(ended.wait(support.PATIENCE))

    def test_a_callback_that_fails(self) -> None:
        def fail(_: leasehold.LostError) -> None:
            raise ValueError("in a callback")

        h = self.client(watch=False).acquire(self.resource, ttl=1, on_lost=fail)
        with self.assertLogs("leasehold") as logs:
            self.server.ask("/v1/break", {"id": h.id, "period": "0s"})
            until("it failed", lambda: any("in a callback" in line for line in logs.output))
        with self.assertRaises(leasehold.LostError):
            h.release()


class Three(support.Case):
    @classmethod
    def setUpClass(cls) -> None:
        if not support.BINARY:
            raise unittest.SkipTest("LEASEHOLD_TEST_BINARY does not name a leasehold binary")
        cls.servers = support.cluster()
        for server in cls.servers:
            cls.addClassCleanup(server.close)
        cls.server = cls.servers[0]

    def urls(self) -> list:
        return [server.url for server in self.servers]

    def leader(self) -> support.Server:
        def ask() -> object:
            try:
                status = self.servers[0].ask("/v1/cluster")
            except OSError:
                return None
            return next((m["name"] for m in status["servers"] if m["role"] == "leader"), None)

        name = until("there is a leader", ask)
        return self.servers[int(str(name)[1:])]

    def test_a_server_that_does_not_answer_is_left(self) -> None:
        dead = "http://" + support.free_address()
        with self.client([dead, *self.urls()]).hold(self.resource) as h:
            h.check()

    def test_each_server_in_turn_is_killed(self) -> None:
        with self.client(self.urls()).hold(self.resource, ttl=20) as h:
            token = h.token
            for server in self.servers:
                server.kill()
                before = h._deadline
                until("it was renewed by another", lambda: h._deadline > before)
                server.start().ready()
            self.assertEqual(h.token, token)

    def test_a_frozen_server_is_left(self) -> None:
        client = self.client(self.urls())
        with client.hold(self.resource, ttl=20) as h:
            frozen = next(s for s in self.servers if s.url == client._servers._choose()[1].address.url)
            frozen.pause()
            try:
                before = h._deadline
                until("it was renewed by another", lambda: h._deadline > before)
            finally:
                frozen.resume()
            h.check()

    def test_a_waiter_keeps_its_place_when_its_server_dies(self) -> None:
        holding, waiting = self.client(self.urls()), self.client(self.urls())
        first, got = holding.acquire(self.resource, ttl=60), []
        thread = threading.Thread(target=lambda: got.append(waiting.acquire(self.resource, ttl=60)))
        thread.start()
        queued = until("it waits", lambda: self.servers[0].status(self.resource).get("queue"))
        asked = next(s for s in self.servers if s.url == waiting._servers._choose()[1].address.url)
        asked.kill()
        asked.start().ready()
        first.release(support.PATIENCE)
        thread.join()
        self.assertEqual(got[0].id, queued[0]["id"])  # the same request, and not another at the end
        got[0].release()

    def test_a_waiter_is_granted_while_its_server_is_frozen(self) -> None:
        holding, waiting = self.client(self.urls()), self.client(self.urls())
        first, got = holding.acquire(self.resource, ttl=60), []
        thread = threading.Thread(target=lambda: got.append(waiting.acquire(self.resource, ttl=60)))
        thread.start()
        until("it waits", lambda: self.servers[0].status(self.resource).get("queue"))
        frozen = next(s for s in self.servers if s.url == waiting._servers._choose()[1].address.url)
        frozen.pause()
        try:
            first.release(support.PATIENCE)
            thread.join()
            got[0].check()
        finally:
            frozen.resume()
        got[0].release()


if __name__ == "__main__":
    unittest.main()
