"""One acquire under way."""

from __future__ import annotations

import dataclasses
import datetime
import random
import secrets
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, TypedDict, Union

from . import _clock, _fork
from ._connection import Abort, Interrupted, Tick
from ._errors import (
    HeldError, InvalidError, LeaseholdError, LostError, NotFoundError, UnavailableError, UndecidedError, transient,
)
from ._hold import Hold
from ._servers import Answer

if TYPE_CHECKING:
    from ._client import Client

Seconds = Union[float, datetime.timedelta]

# The longest that a server lets anybody wait.
_LONGEST_WAIT = 86400.0

# How long an acquire that waits goes on while no server answers at all. Once it is in a queue, it
# goes on until its wait is over.
_UNHEARD = 15.0

# A server keeps the place of a waiter for 15 s without a sign of life.
_SIGN_OF_LIFE = 5.0


@dataclasses.dataclass(frozen=True)
class Waiting:
    """The state of a wait."""

    resource: str
    position: int  # 1 is next
    waiting: int  # how many wait
    holder: str  # who has the resource, if one has it alone
    reason: str  # why
    waited: float  # seconds since the acquire began


class HoldOptions(TypedDict, total=False):
    """What can be said of an acquire beside its resource; leasehold.hold explains it."""

    ttl: Union[Seconds, str, None]
    wait: Optional[Seconds]
    units: Optional[int]
    capacity: Optional[int]
    shared: bool
    holder: str
    reason: str
    labels: Optional[Mapping[str, str]]
    priority: int
    hold_limit: Optional[Seconds]
    grace: Optional[Seconds]
    party: str
    on_wait: Optional[Callable[[Waiting], object]]
    on_lost: Optional[Callable[[LostError], object]]


@dataclasses.dataclass(frozen=True)
class Options:
    """What is asked for."""

    resource: str
    holder: str
    ttl: Union[Seconds, str, None] = None
    wait: Optional[Seconds] = None
    units: Optional[int] = None
    capacity: Optional[int] = None
    shared: bool = False
    reason: str = ""
    labels: Optional[Mapping[str, str]] = None
    priority: int = 0
    hold_limit: Optional[Seconds] = None
    grace: Optional[Seconds] = None
    party: str = ""
    on_wait: Optional[Callable[[Waiting], object]] = None
    on_lost: Optional[Callable[[LostError], object]] = None

    def body(self) -> Dict[str, Any]:
        """Return the request, without what is another one in each attempt."""
        body: Dict[str, Any] = {"resource": self.resource, "holder": self.holder}
        if self.shared and self.units is not None:
            raise InvalidError("shared=True is one slot of many: leave out either shared or units")
        if self.ttl is not None:
            body["ttl"] = self.ttl if isinstance(self.ttl, str) else _duration(self.ttl)
        if self.shared:
            body["shared"] = True
        for name, value in (("hold_limit", self.hold_limit), ("grace", self.grace)):
            if value is not None:
                body[name] = _duration(value)
        for name, given in (
            ("slots", self.units), ("capacity", self.capacity), ("reason", self.reason or None),
            ("labels", dict(self.labels) if self.labels else None), ("priority", self.priority or None),
        ):
            if given is not None:
                body[name] = given
        return body


def seconds(d: Seconds) -> float:
    return d.total_seconds() if isinstance(d, datetime.timedelta) else float(d)


def _duration(d: Seconds) -> str:
    return f"{max(0, round(seconds(d) * 1000))}ms"


class _Stopped(Exception):
    """A callback of the program ended the wait."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _AskAgain(Exception):
    """The server that was to be asked does not know of it."""


class _Granted(Exception):
    """A sign of life was answered by a grant, of which the waiting request did not tell yet."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class Claim:
    """One acquire, under one id: however often it is sent, it is granted once.

    An id is used up when its lease or its wait ends. Then another claim begins.
    """

    def __init__(self, client: "Client", options: Options, began: float, abort: Optional[Abort]) -> None:
        self.hold: Optional[Hold] = None
        self._client = client
        self._options = options
        self._id = secrets.token_hex(16)
        self._party = options.party or self._id
        self._body = dict(options.body(), id=self._id, party=self._party)
        self._began = began
        self._until = None if options.wait is None else began + seconds(options.wait)
        self._abort = abort
        self._generation = _fork.generation()
        self._maybe_granted = False  # an attempt got no answer, and may have been granted or queued
        self._queued = False  # a server said that it waits
        self._asked = began  # when the request that waits was sent
        self._reports = 0

    def ask(self) -> Optional[Hold]:
        """Send the request until it is answered. Return None if it has to be sent anew, under another id."""
        try:
            answer = self._answer()
            if answer is None:
                return None
            self._maybe_granted = True
            return self._granted(answer)
        except HeldError:
            if self._until is not None:
                raise
            return None  # it waited as long as a server allows
        except _Stopped as e:
            raise e.cause

    def withdraw(self, error: Optional[BaseException]) -> None:
        """Make sure that nothing of a failed acquire stays on the server."""
        if self.hold is not None:
            self.hold._begin_release()  # its thread may not have begun: it is released below, too
        refused = isinstance(error, LeaseholdError) and not isinstance(error, UndecidedError)
        if self._generation == _fork.generation() and (self._maybe_granted or not refused):
            self._client._withdraw(self._id, self._options)

    def _answer(self) -> Optional[Answer]:
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._attempt()
            except LeaseholdError as e:
                if isinstance(e, (LostError, NotFoundError)):
                    self._when_gone(e)
                    return None
                if not transient(e):
                    raise
                self._maybe_granted = self._maybe_granted or isinstance(e, UndecidedError)
                if self._given_up():
                    raise
            except _AskAgain:
                pass
            servers = self._client._servers.count()
            if attempts % servers == 0:
                pause = min(0.05 * 2 ** min(attempts // servers, 6), 1.0)
                self._pause(pause * random.uniform(0.5, 1.0))

    def _pause(self, pause: float) -> None:
        until = _clock.now() + pause
        while _clock.now() < until:
            if self._abort is not None and self._abort.is_set():
                raise UnavailableError(f"{self._options.resource} was not acquired: it was cancelled")
            time.sleep(min(0.1, pause))

    def _wait_left(self) -> float:
        if self._until is None:
            return _LONGEST_WAIT
        return min(max(0.0, self._until - _clock.now()), _LONGEST_WAIT)

    def _given_up(self) -> bool:
        if self._until is not None and self._until > self._began and self._wait_left() == 0:
            return True
        return not self._queued and _clock.now() - self._began > _UNHEARD

    def _attempt(self) -> Optional[Answer]:
        """Make one attempt, and return a grant whose remaining time counts from when it was sent."""
        left = self._wait_left()
        body, within, tick = self._body, 5.0, None
        self._asked = _clock.now()
        if left > 0:
            body = dict(body, wait=_duration(left))
            # The server decides when the wait is over.
            within = left + 5.0
            tick = Tick(0.5 if self._options.on_wait else _SIGN_OF_LIFE, self._sign_of_life)
        try:
            answer = self._client._servers.attempt(
                "POST", "/v1/acquire", body, within=within, abort=self._abort, tick=tick)
        except Interrupted as e:
            if isinstance(e.cause, _Granted):
                return e.cause.answer
            raise e.cause
        # After a wait only the server knows when the time began to count; and an attempt without an
        # answer may have waited.
        if "waited_ms" in answer.value or self._maybe_granted:
            self._maybe_granted = True
            return self._confirm(answer)
        return answer

    def _sign_of_life(self) -> float:
        """Keep the place in the queue, whatever became of the connection that waits, and report it."""
        try:
            answer = self._client._servers.attempt(
                "POST", "/v1/renew", {"id": self._id}, within=2.0)
        except HeldError as e:
            self._queued = self._maybe_granted = True
            self._report(e)
        except NotFoundError:
            # The server that was asked to wait did not take the request in, although it had time to.
            if _clock.now() - self._asked >= _SIGN_OF_LIFE / 2:
                raise _AskAgain from None
        except LostError:
            raise
        except LeaseholdError:
            pass  # the request that waits may still be answered
        else:
            raise _Granted(answer)
        if self._options.on_wait is None:
            return _SIGN_OF_LIFE
        self._reports += 1
        return float(min(0.5 * 2 ** min(self._reports, 4), _SIGN_OF_LIFE))

    def _report(self, held: HeldError) -> None:
        if self._options.on_wait is None:
            return
        waiting = Waiting(
            self._options.resource, held.position, held.waiting, held.holder, held.reason,
            _clock.now() - self._began)
        try:
            self._options.on_wait(waiting)
        except Exception as e:
            raise _Stopped(e) from e  # it may look like an error of a server
        if self._generation != _fork.generation():
            raise _Stopped(self._forked())

    def _forked(self) -> LostError:
        return LostError(
            f"{self._options.resource} was asked for by the process that this one was forked from", "forked")

    def _confirm(self, granted: Answer) -> Optional[Answer]:
        """Renew a lease before anybody relies on it."""
        until = _clock.now() + (granted.value.get("remaining_ms") or 0) / 1000
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._client._servers.attempt(
                    "POST", "/v1/renew", {"id": self._id}, within=5.0, abort=self._abort)
            except LeaseholdError as e:
                if not transient(e):
                    raise
                if _clock.now() >= until:
                    return None  # it is over by now
            self._pause(min(0.05 * attempts, 1.0))

    def _when_gone(self, error: LeaseholdError) -> None:
        """Raise an error if somebody ended the lease or the wait; return if it was over by time alone."""
        ending = self._client._ending(self._options.resource, self._id)
        if ending is not None and ending[0] == "wait over":
            if self._until is not None:
                raise HeldError(f"{self._options.resource} was not granted within the wait")
            return
        if ending is not None and ending[0] not in ("expired", "withdrawn", "released", "session expired"):
            how, by, reason = ending
            raise LostError(f"the request for {self._options.resource} was ended by somebody else", how, by, reason)
        if ending is None and isinstance(error, NotFoundError) and not self._maybe_granted:
            raise error

    def _granted(self, answer: Answer) -> Optional[Hold]:
        if self._generation != _fork.generation():
            raise self._forked()
        lease = answer.value
        if lease.get("id") != self._id:
            raise LeaseholdError(f"the answer is about lease {lease.get('id')!r}, and not the one that was asked for")
        hold = Hold(self._client, answer, self._party, self._options.on_lost)
        if not hold.valid:
            return None  # the process was paused: it was over before the answer was read
        self.hold = hold
        hold._start()
        return hold
