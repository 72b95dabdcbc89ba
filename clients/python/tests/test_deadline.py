"""The rule on which all depends, in virtual time: a hold ends before the lease can be anybody else's."""

from __future__ import annotations

import threading
import unittest
from typing import Any, Callable, Dict, List
from unittest import mock

import support  # noqa: F401  sets the path
import leasehold
from leasehold import _clock
from leasehold._hold import Hold
from leasehold._servers import Answer

Respond = Callable[[], Dict[str, Any]]


class World:
    """A clock that is moved by hand, and a server that says what a test tells it to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.answers: List[Respond] = []
        self._watches = False
        self._servers = self

    def attempt(self, method: str, path: str, body: Any = None, **_: Any) -> Answer:
        sent = self.now
        return Answer(sent, self.answers.pop(0)())

    def count(self) -> int:
        return 1

    def lease(self, remaining: float, **more: Any) -> Dict[str, Any]:
        lease = {"resource": "r", "id": "i", "holder": "ann", "token": 7, "floor": 7,
                 "remaining_ms": int(remaining * 1000)}
        lease.update(more)
        return lease

    def hold(self, sent: float, remaining: float) -> Hold:
        return Hold(self, Answer(sent, self.lease(remaining)), "p", None)  # type: ignore[arg-type]


class Deadline(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        patch = mock.patch.object(_clock, "now", lambda: self.world.now)
        patch.start()
        self.addCleanup(patch.stop)

    def test_it_counts_from_before_the_request_was_sent(self) -> None:
        self.world.now = 1004.0  # the answer took four seconds
        hold = self.world.hold(1000.0, 10.0)
        self.assertAlmostEqual(hold.remaining, 10 * 0.99 - 4)
        self.world.now = 1009.89
        self.assertTrue(hold.valid)
        self.world.now = 1009.91
        self.assertFalse(hold.valid)
        with self.assertRaises(leasehold.LostError) as caught:
            hold.token
        self.assertEqual(caught.exception.how, "expired")

    def test_a_renewal_counts_from_before_it_was_sent(self) -> None:
        hold = self.world.hold(1000.0, 10.0)
        self.world.now = 1003.0

        def answer() -> Dict[str, Any]:
            self.world.now += 5  # on its way
            return self.world.lease(10.0)

        self.world.answers = [answer]
        hold._renew()
        self.assertAlmostEqual(hold._deadline, 1003.0 + 9.9)

    def test_an_answer_after_the_deadline_revives_nothing(self) -> None:
        hold = self.world.hold(1000.0, 10.0)
        self.world.now = 1009.0

        def answer() -> Dict[str, Any]:
            self.world.now = 1009.95  # nobody has asked meanwhile whether the hold is valid
            return self.world.lease(10.0)

        self.world.answers = [answer]
        hold._renew()
        self.assertFalse(hold.valid)
        self.assertEqual(hold.lost.how, "expired")

    def test_an_answer_that_takes_longer_than_what_it_grants(self) -> None:
        hold = self.world.hold(1000.0, 10.0)
        self.world.now = 1001.0

        def answer() -> Dict[str, Any]:
            self.world.now = 1004.0
            return self.world.lease(2.0)  # somebody broke it, and left two seconds

        self.world.answers = [answer]
        hold._renew()
        self.assertFalse(hold.valid)

    def test_a_break_that_leaves_some_time(self) -> None:
        hold = self.world.hold(1000.0, 10.0)
        self.world.now = 1001.0
        self.world.answers = [lambda: self.world.lease(2.0)]
        hold._renew()
        self.assertTrue(hold.valid)
        self.world.now = 1002.99
        self.assertFalse(hold.valid)

    def test_another_holder_has_the_lease(self) -> None:
        for change in ({"token": 8, "holder": "bob"}, {"token": 8}, {"holder": "bob"}):
            hold = self.world.hold(self.world.now, 10.0)
            self.world.answers = [lambda: self.world.lease(10.0, **change)]
            hold._renew()
            self.assertEqual(hold.lost.how, "changed")

    def test_a_lost_hold_stays_lost(self) -> None:
        hold = self.world.hold(1000.0, 10.0)
        self.world.now = 1020.0
        self.assertFalse(hold.valid)
        self.world.now = 1001.0  # no clock does that; but nothing else revives it either
        self.assertFalse(hold.valid)

    def test_what_the_server_refuses_is_lost(self) -> None:
        for error in (leasehold.LostError("gone"), leasehold.NotFoundError("gone"), leasehold.HeldError("waits")):
            hold = self.world.hold(self.world.now, 10.0)
            self.world.answers = [mock.Mock(side_effect=error)]
            hold._renew()
            self.assertFalse(hold.valid)

    def test_what_may_succeed_later_is_tried_again(self) -> None:
        for error in (leasehold.UnavailableError("x"), leasehold.DeniedError("x"), leasehold.LimitedError("x")):
            hold = self.world.hold(self.world.now, 10.0)
            self.world.answers = [mock.Mock(side_effect=error)]
            with self.assertLogs("leasehold"):
                hold._renew()
            self.assertTrue(hold.valid)
            self.assertLess(hold._renew_at, self.world.now + 1.1)

    def test_a_hold_is_released_before_the_server_is_asked(self) -> None:
        hold = self.world.hold(1000.0, 10.0)
        hold._begin_release()
        self.assertEqual(hold.lost.how, "released")
        self.world.answers = [lambda: self.world.lease(10.0)]
        hold._extend(self.world.attempt("POST", "/v1/renew"), None)  # an answer that was on its way
        self.assertFalse(hold.valid)

    def test_a_loss_that_two_notice_is_one(self) -> None:
        hold = self.world.hold(1000.0, 10.0)
        self.world.now = 1020.0
        threads = [threading.Thread(target=lambda: hold.valid) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        first = hold.lost
        hold._lose(leasehold.LostError("later", "broken"))
        self.assertIs(hold.lost, first)

    def test_a_lease_without_an_end_is_refused(self) -> None:
        with self.assertRaises(leasehold.LeaseholdError):
            Hold(self.world, Answer(1000.0, self.world.lease(1.0, remaining_ms=None)), "p", None)  # type: ignore


class Clock(unittest.TestCase):
    def test_it_is_the_uptime(self) -> None:
        """It counts what the machine slept, too, and not the calendar."""
        try:
            with open("/proc/uptime") as f:
                uptime = float(f.read().split()[0])
        except OSError:
            self.skipTest("there is no /proc/uptime to compare with")
        self.assertLess(abs(_clock.now() - uptime), 5)


if __name__ == "__main__":
    unittest.main()
