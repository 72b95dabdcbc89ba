"""A lease that this process holds."""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from . import _clock, _fork
from ._connection import Abort, Aborted
from ._errors import HeldError, InvalidError, LeaseholdError, LostError, NotFoundError
from ._servers import Answer
from ._watch import Watch

if TYPE_CHECKING:
    from ._client import Client

_log = logging.getLogger("leasehold")

# How long release waits for an answer. The lease is released in the background if it takes longer.
RELEASE_TIMEOUT = 5.0

# How long the thread of a lost hold waits for its release: the server may have it for longer than
# its TTL, since its time stops while no server leads.
_LINGER = 60.0


class Hold:
    """A lease that this process holds. A thread renews it.

    The hold knows its own deadline, which is before anybody else can be granted the resource.
    ``valid``, ``token`` and ``check`` read the clock at each call, so they are right even in the first
    line after a pause. A process can still be paused between ``check`` and what it does next: show
    ``token`` to what the lease protects, so that it can refuse a late holder.

    All methods may be called from any thread.
    """

    def __init__(
        self, client: "Client", answer: Answer, party: str, on_lost: Optional[Callable[[LostError], object]]
    ) -> None:
        lease = answer.value
        self._client = client
        self._resource: str = lease["resource"]
        self._id: str = lease["id"]
        self._holder: str = lease["holder"]
        self._token: int = lease["token"]
        self._units: Tuple[str, ...] = tuple(lease.get("units") or ())
        self._slots: int = lease.get("slots") or 0
        self._party = party
        self._abort = Abort()
        self._thread: Optional[threading.Thread] = None
        self._freed = threading.Event()  # the server has released it, or nobody tries any longer
        # Reentrant, because a signal handler may ask for it in the middle of anything.
        self._changed = threading.Condition(threading.RLock())  # guards what follows
        self._floor: int = lease["floor"]
        self._span = _remaining(lease)  # what the last answer granted
        self._deadline = _clock.deadline_after(answer.sent, self._span)
        self._renew_at = self._next_renewal(answer.sent)
        self._failures = 0  # of renewals, in a row
        self._note: Optional[str] = None  # to be sent with the next renewal
        self._lost: Optional[LostError] = None
        self._released = False  # release was called
        self._finished = False  # and another request ends the lease
        self._on_lost: List[Callable[[LostError], object]] = [on_lost] if on_lost else []
        self._on_freed: List[Callable[[], object]] = []

    @property
    def resource(self) -> str:
        """The name of the resource."""
        return self._resource

    @property
    def id(self) -> str:
        """The id of the lease on the server."""
        return self._id

    @property
    def holder(self) -> str:
        """Who holds it, as others see it."""
        return self._holder

    @property
    def party(self) -> str:
        """The party that the hold belongs to.

        The server refuses a wait that would close a cycle of parties waiting for each other.
        """
        return self._party

    @property
    def units(self) -> Tuple[str, ...]:
        """The names of the slots that are held, if they have names."""
        return self._units

    @property
    def slots(self) -> int:
        """How many slots are held; 0 is all of them, exclusively."""
        return self._slots

    @property
    def token(self) -> int:
        """The fencing token, to be shown to what the lease protects.

        It is larger than that of every holder before. Reading it raises LostError once the hold is lost.
        Read it for each write: one that is kept outlives the hold, and only a guard can tell then.
        """
        self.check()
        return self._token

    @property
    def floor(self) -> int:
        """The smallest token that is alive on the resource: that of the hold itself, unless it is shared.

        A guard keeps the largest floor that it saw and refuses tokens below it. Raises LostError once the
        hold is lost.
        """
        self.check()
        return self._floor

    @property
    def valid(self) -> bool:
        """Whether the resource is surely still ours. It reads the clock."""
        return self._look() is None

    @property
    def lost(self) -> Optional[LostError]:
        """How the hold was lost or released; None while it is valid."""
        return self._look()

    @property
    def remaining(self) -> float:
        """How many seconds the hold is valid without a renewal; 0 if it is lost."""
        deadline = self._deadline
        return max(0.0, deadline - _clock.now()) if self._look() is None else 0.0

    def check(self) -> None:
        """Raise LostError if the hold is lost."""
        lost = self._look()
        if lost is not None:
            raise _copy(lost)

    def wait_lost(self, timeout: Optional[float] = None) -> bool:
        """Wait until the hold is lost or released, and report whether it is."""
        until = None if timeout is None else _clock.now() + timeout
        with self._changed:
            while self._look_locked() is None:
                left = self._deadline - _clock.now()
                if until is not None:
                    left = min(left, until - _clock.now())
                    if left <= 0 and _clock.now() >= until:
                        return False
                self._changed.wait(max(0.001, min(left, self._glance())))
            return True

    def note(self, text: str) -> None:
        """Say how far the work is, in at most 256 bytes, for people who look. It goes with the next renewal."""
        if len(text.encode()) > 256 or any(c < " " or c == "\x7f" for c in text):
            raise InvalidError("a note has at most 256 bytes, and no control characters")
        with self._changed:
            self._note = text

    def release(self, timeout: float = RELEASE_TIMEOUT) -> None:
        """Give the resource back. Call it when the work has ended. Further calls do nothing.

        Raise LostError if the hold was lost before: some of the work was not protected. If no server answers
        within the timeout, the release goes on in the background, and the lease ends with its TTL at the latest.
        """
        lost = self._begin_release()
        if threading.current_thread() is not self._thread:  # as it is in on_lost
            self._freed.wait(timeout)
        if lost is not None:
            raise _copy(lost)

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.release()
        except LostError:
            if kind is None:
                raise
            _log.warning("%s was lost before its work failed", self._resource)

    def __repr__(self) -> str:
        lost = self._look()
        state = f"{self.remaining:.1f} s left" if lost is None else lost.how
        return f"<leasehold.Hold {self._resource} token={self._token} {state}>"

    # What follows is for this package.

    def _start(self) -> None:
        self._client._add(self)
        try:
            self._thread = threading.Thread(target=self._run, daemon=True, name=f"leasehold-{self._resource}")
            self._thread.start()
        except RuntimeError:  # there can be no more threads
            self._client._remove(self)
            raise

    def _look(self) -> Optional[LostError]:
        # The deadline is read before the clock, and without the lock, since programs ask before every
        # write. Once it has passed, the lock decides whether the hold was renewed or is lost for good.
        deadline = self._deadline
        if self._lost is None and _clock.now() < deadline:
            return None
        with self._changed:
            return self._look_locked()

    def _look_locked(self) -> Optional[LostError]:
        if self._lost is None and _clock.now() >= self._deadline:
            self._lose_locked(LostError(f"the lease on {self._resource} expired", "expired"))
        return self._lost

    def _lose_locked(self, why: LostError) -> None:
        if self._lost is None:
            self._lost = why
            self._changed.notify_all()

    def _lose(self, why: LostError) -> None:
        with self._changed:
            self._lose_locked(why)

    def _begin_release(self, finished: bool = False) -> Optional[LostError]:
        """End the hold, and have the thread release the lease, unless the caller ends it by another request.

        Return how it was lost before, if it was.
        """
        with self._changed:
            lost = self._look_locked()
            self._released = True
            self._finished = self._finished or finished
            # From this line on nobody may rely on it, whatever the server says.
            self._lose_locked(LostError(f"the lease on {self._resource} was released", "released"))
            self._changed.notify_all()
        self._abort.set()
        return lost if lost is not None and lost.how != "released" else None

    def _when_lost(self, do: Callable[[LostError], object]) -> None:
        """Call a function, on the hold's thread, when the hold is lost other than by its release."""
        with self._changed:
            self._on_lost.append(do)

    def _when_freed(self, do: Callable[[], object]) -> None:
        with self._changed:
            if not self._freed.is_set():
                self._on_freed.append(do)
                return
        do()

    def _forked(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._abort = Abort()
        self._on_lost, self._on_freed = [], []
        if self._lost is None:
            self._lost = LostError(
                f"the lease on {self._resource} is held by the process that this one was forked from", "forked")
        self._freed = threading.Event()
        self._freed.set()

    def _glance(self) -> float:
        """Return how long to wait at most: timers stop while the machine sleeps, and the clock does not."""
        return min(1.0, max(self._span / 10, 0.01))

    def _next_renewal(self, last: float) -> float:
        # A third leaves room for several failed attempts; not the same for all who began together.
        return last + max(self._span / 3 * random.uniform(0.9, 1.0), 0.05)

    def _run(self) -> None:
        generation = _fork.generation()
        try:
            self._keep()
            if self._lost is not None and self._lost.how != "released":
                self._tell()
            if generation == _fork.generation():
                self._give_back()
        finally:
            if generation == _fork.generation():
                self._client._remove(self)
                with self._changed:
                    self._freed.set()
                    waiting, self._on_freed = self._on_freed, []
                for do in waiting:
                    _call(do)

    def _keep(self) -> None:
        """Renew until the hold is lost or released."""
        watch = Watch(self._client, self._resource, self._id, self._abort)
        try:
            while True:
                try:
                    if not self._wait_until_due(watch):
                        return
                    self._renew()
                except Aborted:
                    pass  # it is released
                except Exception as e:  # whatever it is, the lease has to be renewed
                    self._retry_later(e)
        finally:
            watch.close()

    def _wait_until_due(self, watch: Watch) -> bool:
        """Wait until a renewal is due. Report whether the hold is still valid."""
        while True:
            with self._changed:
                if self._look_locked() is not None:
                    return False
                left = self._renew_at - _clock.now()
                if left <= 0:
                    return True
                pause = min(left, self._glance(), self._deadline - _clock.now())
                if not watch.is_open():
                    self._changed.wait(max(pause, 0.001))
            # Not under the lock: others ask whether the hold is valid.
            left = self._renew_at - _clock.now()
            if watch.is_open():
                if watch.wait(pause):
                    return True  # somebody did something to the lease; a renewal tells what
            elif left > 0.1 and watch.open(min(left / 2, 1.0)):
                return True  # what happened before it was open, a renewal tells

    def _renew(self) -> None:
        with self._changed:
            body: Dict[str, Any] = {"id": self._id}
            note = self._note
            # A server that does not answer must leave time to ask another.
            within = min(max(self._span / 5, 0.1), 10.0, self._deadline - _clock.now())
        if note is not None:
            body["note"] = note
        try:
            answer = self._client._servers.attempt("POST", "/v1/renew", body, within=within, abort=self._abort)
        except (LostError, NotFoundError, HeldError) as e:
            self._lose(LostError(str(e), "ended"))
        except LeaseholdError as e:
            if isinstance(e, InvalidError):
                self._note = None  # nothing else can be wrong with it
            self._retry_later(e)
        else:
            self._extend(answer, note)

    def _retry_later(self, why: Exception) -> None:
        with self._changed:
            self._failures += 1
            pause = 0.0
            # Within a round of all servers it does not pause: another one is probably fine.
            servers = self._client._servers.count()
            if self._failures % servers == 0:
                most = max(min(self._span / 20, 1.0), 0.01)
                pause = min(0.05 * 2 ** min(self._failures // servers, 6), most) * random.uniform(0.5, 1.0)
            self._renew_at = _clock.now() + pause
            left = self._deadline - _clock.now()
            level = logging.WARNING if self._failures == 1 else logging.DEBUG  # once is enough
        _log.log(level, "%s could not be renewed, %.1f s before it is lost: %s", self._resource, left, why)

    def _extend(self, answer: Answer, note: Optional[str]) -> None:
        """Move the deadline by the answer to a renewal."""
        lease = answer.value
        with self._changed:
            # An answer that comes after the deadline is too late, whatever it says: somebody may have
            # seen already that the hold was lost.
            if self._look_locked() is not None:
                return
            if lease.get("token") != self._token or lease.get("holder") != self._holder:
                by = str(lease.get("holder", ""))
                self._lose_locked(LostError(f"the lease on {self._resource} was given to another holder", "changed", by))
                return
            # Renewals are sent one after the other, so this answer is the newest. It may also shorten the
            # lease: after a break only what the break left remains.
            self._span = _remaining(lease)
            self._deadline = _clock.deadline_after(answer.sent, self._span)
            self._renew_at = self._next_renewal(answer.sent)
            self._floor = lease.get("floor", self._floor)
            self._failures = 0
            if self._note is note:
                self._note = None
            self._look_locked()  # an answer may take longer than what it grants
            self._changed.notify_all()

    def _tell(self) -> None:
        """Tell everybody that the hold is lost."""
        why = self._lost
        assert why is not None
        if why.how == "ended":
            ending = self._client._ending(self._resource, self._id)
            if ending is not None:
                why.how, why.by, why.reason = ending
        _log.warning("lost: %s", why)
        with self._changed:
            tell, self._on_lost = self._on_lost, []
        for do in tell:
            _call(lambda do=do: do(why))  # type: ignore[misc]

    def _give_back(self) -> None:
        """Release the lease, unless it is over."""
        lost = self._lost
        assert lost is not None
        over = self._deadline + self._span * 2 * _clock.MARGIN
        if self._finished:
            return
        if lost.how == "released":
            self._client._release(self._id, until=over)
            return
        if lost.how != "expired":
            return  # the server has ended it, or somebody else has it
        # It is not given back before the work has ended, although it is lost: until then the server
        # may as well keep others from it.
        with self._changed:
            while not self._released and _clock.now() < over + _LINGER:
                self._changed.wait(1.0)
            released = self._released and not self._finished
        if released:
            self._client._release(self._id, until=_clock.now(), within=1.0)


def _remaining(lease: Dict[str, Any]) -> float:
    remaining = lease.get("remaining_ms")
    if not isinstance(remaining, (int, float)):
        raise LeaseholdError("the server granted a lease without an end: ask for a ttl")
    return remaining / 1000


def _copy(lost: LostError) -> LostError:
    """Return an exception of its own for each who raises it, since raising one adds a traceback to it."""
    return LostError(str(lost.args[0]), lost.how, lost.by, lost.reason)


def _call(do: Callable[[], object]) -> None:
    try:
        do()
    except Exception:
        _log.exception("a callback failed")
