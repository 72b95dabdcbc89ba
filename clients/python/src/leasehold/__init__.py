"""Hold leases: time-bound, exclusive, fenced ownership of named resources.

    import leasehold

    with leasehold.hold("reports/nightly", ttl=30, wait=300, reason="nightly report") as h:
        for page in pages:
            h.check()                      # raises LostError once the lease is lost
            write(page, token=h.token)     # what is written to can refuse a late holder

A hold ends, by this process's own clock, before the lease can be anybody else's. A thread renews it. The
servers, the namespace and the token that proves who asks come from the environment, or from a Client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Union

from ._claim import HoldOptions, Waiting
from ._client import Client, Holding
from ._errors import (
    DeniedError, HeldError, InvalidError, LeaseholdError, LimitedError, LostError, NotFoundError, RefusedError,
    UnavailableError, UndecidedError,
)
from ._hold import Hold
from ._task import Claiming, Task
from ._version import VERSION as __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._asyncio import AsyncHolding

__all__ = [
    "Client", "DeniedError", "HeldError", "Hold", "InvalidError", "LeaseholdError", "LimitedError", "LostError",
    "NotFoundError", "RefusedError", "Task", "UnavailableError", "UndecidedError", "Waiting", "acquire", "add_task",
    "ahold", "claim", "hold",
]

_default: Optional[Client] = None


def hold(resource: str, **options: "Unpack[HoldOptions]") -> Holding:
    """Return a context manager that acquires a resource and releases it at the end of the block.

    The block raises LostError at its end if the hold was lost before that, because some of the work was not
    protected then. An exception of the block itself is raised as it is.

    Options:

    ``ttl``: how long the lease lasts without a renewal, in seconds or as a timedelta; ``"auto"`` for what the
    server has learned; by default what the resource's definition says, or 30 s. It is how long others wait for a
    holder that died, and how long a holder survives without a server.
    ``wait``: how long to wait in the queue, in seconds or as a timedelta; None for as long as it takes, 0 for not
    at all. When it is over, HeldError says who has it.
    ``units``: how many slots of a resource that has several; ``h.units`` are their names, if they have names.
    ``capacity``: with units, how many there are, if no definition says so.
    ``shared``: one slot, beside others that share the resource, and never beside an exclusive holder. Without
    units and shared the hold is exclusive.
    ``reason``, ``labels``, ``holder``: for others to see.
    ``priority``: -1000 to 1000; larger goes first in the queue.
    ``hold_limit``: the total time that the lease may be held, renewals included.
    ``grace``: a pause before the next grant if the lease ends without a release.
    ``party``: who waits, for the detection of deadlocks; by default that of the hold in whose block this is.
    ``on_wait``: called with a Waiting now and then while it waits. What it raises ends the wait.
    ``on_lost``: called with a LostError, in the thread that renews, when the hold is lost.
    """
    return _client().hold(resource, **options)


def acquire(resource: str, **options: "Unpack[HoldOptions]") -> Hold:
    """Acquire a resource and return the hold, which is renewed until its method release is called.

    Prefer hold, which cannot forget that. The options are the same.
    """
    return _client().acquire(resource, **options)


def ahold(resource: str, **options: "Unpack[HoldOptions]") -> "AsyncHolding":
    """Return an asynchronous context manager that acquires a resource and releases it at the end of the block.

    If the hold is lost in the block, the task is cancelled where it stands, and the block raises LostError. The
    options are those of hold; callbacks are called in the event loop.
    """
    return _client().ahold(resource, **options)


def claim(folder: str, **options: "Unpack[HoldOptions]") -> Claiming:
    """Return a context manager that claims the next task of a folder, such as "jobs/", and finishes it.

    It waits until there is one. The end of the block marks the task done, and an exception in it failed, to be
    tried again while it has attempts left; ``task.done(result)`` says what it came to. Ctrl-C and sys.exit give it
    back. The end of the block raises LostError if the task was lost: somebody else does it again.

        while True:
            with leasehold.claim("jobs/") as task:
                task.done(resize(task.value.decode()))

    The options are those of hold, less units, capacity and shared.
    """
    return _client().claim(folder, **options)


def add_task(path: str, value: Union[str, bytes] = b"", *, priority: int = 0, attempts: int = 0) -> None:
    """Add a task, such as "jobs/resize-42", with what is to be done.

    The same once more changes nothing; one that is done or has failed begins again. Those of a larger priority are
    claimed first. A task fails for good after so many attempts; 0: after 3.
    """
    _client().add_task(path, value, priority=priority, attempts=attempts)


def _client() -> Client:
    # Without a lock, which a fork could leave locked: two threads may make one each, and both work.
    global _default
    if _default is None:
        _default = Client()
    return _default
