"""What a hold is, against a real server."""

from __future__ import annotations

import threading
import time
import unittest

import support
import leasehold
from support import until


class Holding(support.Case):
    def test_a_block_holds_and_releases(self) -> None:
        client = self.client(holder="ann")
        with client.hold(self.resource, ttl=30, reason="test", labels={"team": "ml"}) as h:
            held = self.server.holders(self.resource)[0]
            self.assertEqual((held["holder"], held["reason"], held["labels"]), ("ann", "test", {"team": "ml"}))
            self.assertEqual((held["token"], held["id"]), (h.token, h.id))
            self.assertEqual(h.token, h.floor)
            self.assertTrue(h.valid)
            h.check()
            self.assertIsNone(h.lost)
            self.assertGreater(h.remaining, 0)
        self.assertEqual(self.server.holders(self.resource), [])
        self.assertEqual(h.lost.how, "released")
        with self.assertRaises(leasehold.LostError):
            h.token
        with client.hold(self.resource, ttl=30) as again:
            self.assertGreater(again.token, held["token"])

    def test_an_exception_releases_too(self) -> None:
        with self.assertRaises(KeyError):
            with self.client().hold(self.resource):
                raise KeyError
        self.assertEqual(self.server.holders(self.resource), [])

    def test_a_hold_is_renewed(self) -> None:
        with self.client().hold(self.resource, ttl=2) as h:
            for _ in range(5):  # which takes more than a TTL
                before = h._deadline
                until("it was renewed", lambda: h._deadline > before)
                h.check()
            self.assertEqual(self.server.holders(self.resource)[0]["token"], h.token)

    def test_held_says_who_has_it(self) -> None:
        with self.client(holder="ann").hold(self.resource, reason="why not"):
            with self.assertRaises(leasehold.HeldError) as caught:
                self.client(holder="bob").acquire(self.resource, wait=0)
        self.assertEqual((caught.exception.holder, caught.exception.reason), ("ann", "why not"))

    def test_a_wait_ends(self) -> None:
        client = self.client()
        with client.hold(self.resource):
            with self.assertRaises(leasehold.HeldError):
                client.acquire(self.resource, wait=0.3)
            self.assertEqual(self.server.status(self.resource)["waiting"], 0)

    def test_waiters_are_told_their_place_and_granted_in_order(self) -> None:
        client = self.client()
        first, order, places = client.acquire(self.resource, holder="first"), [], {}

        def wait(name: str) -> None:
            def place(w: leasehold.Waiting) -> None:
                places[name] = w

            with client.hold(self.resource, holder=name, on_wait=place) as h:
                order.append((name, h.token))

        threads = []
        for n in range(3):
            thread = threading.Thread(target=wait, args=(f"w{n}",))
            thread.start()
            threads.append(thread)
            until("it waits", lambda: self.server.status(self.resource)["waiting"] == n + 1)
        until("all know their places", lambda: len(places) == 3)
        self.assertEqual([places[f"w{n}"].position for n in range(3)], [1, 2, 3])
        self.assertEqual({w.holder for w in places.values()}, {"first"})
        first.release()
        for thread in threads:
            thread.join()
        self.assertEqual([name for name, _ in order], ["w0", "w1", "w2"])
        self.assertEqual(sorted(token for _, token in order), [token for _, token in order])

    def test_what_on_wait_raises_ends_the_wait(self) -> None:
        client = self.client()

        def refuse(_: leasehold.Waiting) -> None:
            raise OSError("not today")  # one that could be taken for the connection's

        with client.hold(self.resource):
            with self.assertRaisesRegex(OSError, "not today"):
                client.acquire(self.resource, on_wait=refuse)
            until("it left the queue", lambda: self.server.status(self.resource)["waiting"] == 0)

    def test_a_renewal_does_not_wait_behind_an_acquire(self) -> None:
        client = self.client()
        with client.hold(self.resource, ttl=2) as h:
            waiting = threading.Thread(target=lambda: self.assertRaises(
                leasehold.HeldError, client.acquire, self.resource, wait=3))
            waiting.start()
            waiting.join()
            h.check()

    def test_shared_and_exclusive(self) -> None:
        client = self.client()
        with client.hold(self.resource, shared=True) as one, client.hold(self.resource, shared=True) as two:
            self.assertEqual(two.floor, one.token)
            with self.assertRaises(leasehold.HeldError):
                client.acquire(self.resource, wait=0)
        with client.hold(self.resource):
            with self.assertRaises(leasehold.HeldError):
                client.acquire(self.resource, shared=True, wait=0)

    def test_units_of_a_pool(self) -> None:
        put(self.server, "/v1/definitions/" + self.resource, {"units": ["gpu0", "gpu1", "gpu2"]})
        client = self.client()
        with client.hold(self.resource, units=2) as two, client.hold(self.resource, units=1) as one:
            self.assertEqual(sorted(two.units + one.units), ["gpu0", "gpu1", "gpu2"])
            self.assertEqual((two.slots, one.slots), (2, 1))
            with self.assertRaises(leasehold.HeldError):
                client.acquire(self.resource, units=1, wait=0)
        with self.assertRaises(leasehold.RefusedError):
            client.acquire(self.resource, units=4)

    def test_a_semaphore(self) -> None:
        client = self.client()
        with client.hold(self.resource, units=1, capacity=2), client.hold(self.resource, units=1, capacity=2):
            with self.assertRaises(leasehold.HeldError):
                client.acquire(self.resource, units=1, capacity=2, wait=0)

    def test_a_deadlock_is_refused(self) -> None:
        client, a, b = self.client(), self.resource + "/a", self.resource + "/b"
        refused, both = [], threading.Barrier(2)

        def take(first: str, then: str) -> None:
            with client.hold(first):
                both.wait()
                try:
                    with client.hold(then):
                        pass
                except leasehold.RefusedError as e:
                    refused.append(e.cycle)

        threads = [threading.Thread(target=take, args=pair) for pair in ((a, b), (b, a))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([len(cycle) for cycle in refused], [2])

    def test_threads_are_parties_of_their_own(self) -> None:
        """What two threads of one holder wait for is no deadlock of that holder."""
        ours, theirs = self.client(holder="ours"), self.client(holder="theirs")
        a, b = self.resource + "/a", self.resource + "/b"
        held, other = ours.acquire(a), theirs.acquire(b, party="them")
        waiter = threading.Thread(target=lambda: theirs.acquire(a, party="them").release())
        waiter.start()
        until("they wait", lambda: self.server.status(a)["waiting"] == 1)
        with self.assertRaises(leasehold.HeldError):  # and not RefusedError: another thread holds a
            ours.acquire(b, wait=0.3)
        held.release()
        waiter.join()
        other.release()

    def test_a_hold_limit(self) -> None:
        lost = threading.Event()
        with self.assertRaises(leasehold.LostError):
            with self.client().hold(self.resource, ttl=30, hold_limit=0.5, on_lost=lambda e: lost.set()):
                self.assertTrue(lost.wait(support.PATIENCE))

    def test_notes_go_with_renewals(self) -> None:
        with self.client().hold(self.resource, ttl=1) as h:
            h.note("epoch 3 of 10")
            until("it is noted", lambda: self.server.holders(self.resource)[0].get("note") == "epoch 3 of 10")
            with self.assertRaises(leasehold.InvalidError):
                h.note("x" * 257)

    def test_default_ttl_of_a_definition(self) -> None:
        put(self.server, "/v1/definitions/" + self.resource, {"default_ttl": "7s"})
        with self.client().hold(self.resource) as h:
            self.assertLess(h.remaining, 7)

    def test_namespaces(self) -> None:
        with self.client(namespace="one").hold(self.resource), self.client(namespace="two").hold(self.resource):
            self.assertEqual(self.server.holders(self.resource), [])

    def test_names_of_any_kind(self) -> None:
        with self.client(holder="Žofie").hold(self.resource + "/a b/ü?&%", labels={"ключ": "значение"}) as h:
            h.check()

    def test_what_is_wrong_says_so(self) -> None:
        client = self.client()
        for resource, options, error in (
            ("a//b", {}, leasehold.InvalidError), (self.resource, {"ttl": 0.01}, leasehold.InvalidError),
            (self.resource, {"units": 0}, leasehold.LeaseholdError), (self.resource, {"colour": "red"}, TypeError),
            (self.resource, {"shared": True, "units": 1}, leasehold.InvalidError),
        ):
            with self.assertRaises(error, msg=f"{resource} {options}"):
                client.acquire(resource, **options)
        for address in ("ftp://x", "http://", "http://u:p@h", "http://h/?q", "h:x"):
            with self.assertRaises(leasehold.InvalidError, msg=address):
                leasehold.Client(address)

    def test_no_server(self) -> None:
        client = self.client("http://" + support.free_address())
        with self.assertRaisesRegex(leasehold.UnavailableError, "refused: is a server running there\\? LEASEHOLD_SERVER"):
            client.acquire(self.resource, wait=0.5)

    def test_not_a_server(self) -> None:
        with self.assertRaisesRegex(leasehold.LeaseholdError, "not a Leasehold server|nothing at"):
            self.client(self.server.url + "/elsewhere").acquire(self.resource)

    def test_a_second_release_does_nothing(self) -> None:
        h = self.client().acquire(self.resource)
        h.release()
        h.release()

    def test_wait_lost(self) -> None:
        h = self.client().acquire(self.resource)
        self.assertFalse(h.wait_lost(0.05))
        threading.Timer(0.1, h.release).start()
        self.assertTrue(h.wait_lost(support.PATIENCE))

    def test_many_threads(self) -> None:
        """Fifty threads, one lease: a counter that nothing else protects."""
        client, counter = self.client(), [0]

        def count() -> None:
            for _ in range(4):
                with client.hold(self.resource, ttl=30):
                    seen = counter[0]
                    time.sleep(0)
                    counter[0] = seen + 1

        threads = [threading.Thread(target=count) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counter[0], 200)

    def test_many_holds(self) -> None:
        client = self.client()
        holds = [client.acquire(f"{self.resource}/{n}", ttl=5) for n in range(60)]
        until("all were renewed", lambda: all(h._renew_at > h._first_renewal for h in with_first(holds)))
        for h in holds:
            h.check()
        client.close()
        for n in range(60):
            self.assertEqual(self.server.holders(f"{self.resource}/{n}"), [])

    def test_connections_are_kept(self) -> None:
        proxy = self.proxy()
        client = self.client(proxy.url, watch=False)
        for _ in range(50):
            with client.hold(self.resource):
                pass
        self.assertLessEqual(len(proxy._open), 2 * 2)  # the caller's and the thread's, both ends each


def with_first(holds: list) -> list:
    for h in holds:
        if not hasattr(h, "_first_renewal"):
            h._first_renewal = h._renew_at
    return holds


def put(server: support.Server, path: str, body: dict) -> None:
    import json
    import urllib.request

    request = urllib.request.Request(server.url + path, data=json.dumps(body).encode(), method="PUT")
    with urllib.request.urlopen(request):
        pass


if __name__ == "__main__":
    unittest.main()
