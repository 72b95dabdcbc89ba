"""Tasks, against a real server."""

from __future__ import annotations

import threading
import unittest
from typing import Any, Dict

import support
import leasehold
from support import until


class Tasks(support.Case):
    def setUp(self) -> None:
        super().setUp()
        self.folder = self.resource + "/"

    def state(self, name: str) -> Dict[str, Any]:
        return self.server.ask("/v1/tasks/" + self.folder + name)

    def test_tasks_are_claimed_in_order_and_finished(self) -> None:
        client = self.client(holder="ann")
        client.add_task(self.folder + "a", "one")
        client.add_task(self.folder + "b", b"two", priority=5)
        client.add_task(self.folder + "b", b"two", priority=5)
        with client.claim(self.folder) as task:
            self.assertEqual((task.path, task.value), (self.folder + "b", b"two"))
            self.assertEqual(self.server.holders(task.path)[0]["token"], task.token)
            task.check()
        self.assertEqual(self.state("b")["state"], "done")
        with client.claim(self.folder) as task:
            with self.assertRaises(leasehold.InvalidError):
                task.done({"no": "text"})  # type: ignore[arg-type]
            with self.assertRaises(leasehold.InvalidError):
                task.done(b"\xff")
            task.done(b"fine")
            self.assertEqual(self.server.holders(task.path), [])
            with self.assertRaises(leasehold.InvalidError):
                task.done("once more")
        found = self.state("a")
        self.assertEqual((found["state"], found["result"], found["holder"]), ("done", "fine", "ann"))
        with self.assertRaises(leasehold.HeldError):
            with client.claim(self.folder, wait=0):
                pass
        with self.assertRaises(leasehold.InvalidError):
            client.claim("jobs")

    def test_an_exception_fails_the_task_and_a_stop_gives_it_back(self) -> None:
        client = self.client()
        client.add_task(self.folder + "a", attempts=2)
        for stop, attempts in ((SystemExit, 0), (KeyboardInterrupt, 0), (ValueError, 1)):
            with self.assertRaises(stop):
                with client.claim(self.folder):
                    raise stop("boom")
            until("it is given back", lambda: self.state("a")["state"] == "todo")
            self.assertEqual(self.state("a")["attempts"], attempts)
        self.assertEqual(self.state("a")["result"], "ValueError: boom")
        with client.claim(self.folder) as task:
            task.fail("again")
        self.assertEqual(self.state("a")["state"], "failed")

    def test_a_worker_waits_for_a_task(self) -> None:
        client, claimed, waits = self.client(), [], threading.Event()

        def work() -> None:
            with client.claim(self.folder, wait=30, on_wait=lambda w: waits.set()) as task:
                claimed.append(task.path)

        worker = threading.Thread(target=work)
        worker.start()
        self.assertTrue(waits.wait(support.PATIENCE))
        client.add_task(self.folder + "late")
        worker.join(support.PATIENCE)
        self.assertEqual(claimed, [self.folder + "late"])
        self.assertEqual(self.state("late")["state"], "done")

    def test_a_late_result_is_refused(self) -> None:
        client = self.client()
        client.add_task(self.folder + "a")
        with self.assertRaises(leasehold.LostError):
            with client.claim(self.folder, ttl=30) as late:
                self.server.ask("/v1/break", {"id": late.hold.id, "period": "0s", "by": "ops"})
                with client.claim(self.folder) as next_one:
                    next_one.done("mine")
                late.done("too late")
        found = self.state("a")
        self.assertEqual((found["state"], found["result"]), ("done", "mine"))

    def test_a_lost_answer_is_no_second_result(self) -> None:
        proxy = support.Proxy(self.server.address)
        self.addCleanup(proxy.close)
        client = leasehold.Client(proxy.url)
        self.addCleanup(client.close)
        client.add_task(self.folder + "a", attempts=1)
        proxy.lose_answers("/v1/finish", 1)
        with client.claim(self.folder) as task:
            task.done("once")
        self.assertEqual(proxy.lost("/v1/finish"), 1)
        found = self.state("a")
        self.assertEqual((found["state"], found["result"], found["attempts"]), ("done", "once", 1))


if __name__ == "__main__":
    unittest.main()
