"""Holds in asyncio. The thread that renews is the same as elsewhere, so an event loop that is busy loses nothing."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Callable, List, Optional

from ._claim import HoldOptions
from ._client import Client, _party
from ._connection import Abort
from ._errors import LostError
from ._hold import RELEASE_TIMEOUT, Hold


class AsyncHolding:
    """Acquires at the beginning of an async with block, and releases at its end.

    When the hold is lost in between, the task is cancelled, and the block raises LostError.
    """

    def __init__(self, client: Client, resource: str, options: HoldOptions) -> None:
        self._client = client
        self._resource = resource
        self._options = options
        self._hold: Optional[Hold] = None
        self._inside = False
        self._cancelled = False

    async def __aenter__(self) -> Hold:
        if self._hold is not None:
            raise RuntimeError("one ahold() is for one async with block: call ahold again")
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._hold = hold = await self._acquire()
        hold._when_lost(lambda lost: _in_loop(self._loop, self._cancel))
        self._outer = _party.get()
        _party.set(hold.party)
        self._inside = True
        self._cancellations = task.cancelling() if hasattr(task, "cancelling") else 0
        if not hold.valid:  # before anybody was asked to tell
            self._loop.call_soon(self._cancel)
        return hold

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        assert self._hold is not None
        self._inside = False
        _party.set(self._outer)
        ours = self._cancelled
        if ours and hasattr(self._task, "uncancel"):
            # Somebody else may have cancelled the task, too.
            ours = self._task.uncancel() <= self._cancellations
        lost = await self._release(self._hold)
        if lost is not None and (kind is None or ours and issubclass(kind, asyncio.CancelledError)):
            raise lost from error

    def _cancel(self) -> None:
        # It runs in the loop, so the task stands at an await, which is inside the block if this is set.
        if self._inside and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    async def _acquire(self) -> Hold:
        """Acquire in a thread of its own, since it may wait for long."""
        abort = Abort()
        result: "asyncio.Future[Hold]" = self._loop.create_future()
        options = self._options.copy()
        for name in ("on_wait", "on_lost"):
            if options.get(name) is not None:
                options[name] = self._calls(options[name])  # type: ignore[literal-required]
        prepared = self._client._options(self._resource, options)

        lock = threading.Lock()  # guards what follows
        granted: List[Hold] = []
        abandoned: List[bool] = []  # nobody waits for the result any longer

        def deliver(error: Optional[BaseException]) -> None:
            if not result.done():
                if error is None:
                    result.set_result(granted[0])
                else:
                    result.set_exception(error)

        def run() -> None:
            failure: Optional[BaseException] = None
            try:
                hold = self._client._acquire(prepared, abort)
                with lock:
                    granted.append(hold)
                    unwanted = bool(abandoned)
                if unwanted:
                    hold._begin_release()
            except BaseException as e:
                failure = e
            _in_loop(self._loop, deliver, failure)

        threading.Thread(target=run, daemon=True, name=f"leasehold-acquire-{self._resource}").start()
        try:
            return await result
        except BaseException:  # cancelled, or refused
            with lock:
                abandoned.append(True)
            for hold in granted:
                hold._begin_release()
            abort.set()
            raise

    async def _release(self, hold: Hold) -> Optional[LostError]:
        lost = hold._begin_release()
        freed = asyncio.Event()
        hold._when_freed(lambda: _in_loop(self._loop, freed.set))
        try:
            await asyncio.wait_for(freed.wait(), RELEASE_TIMEOUT)
        except asyncio.TimeoutError:
            pass  # it goes on in the background
        return lost

    def _calls(self, do: Callable[[Any], object]) -> Callable[[Any], object]:
        """Return a function that has another called in the event loop."""
        return lambda what: _in_loop(self._loop, do, what)


def _in_loop(loop: asyncio.AbstractEventLoop, do: Callable[..., object], *args: Any) -> bool:
    """Have a function called in an event loop, and report whether it will be, unless the loop ends before."""
    try:
        loop.call_soon_threadsafe(do, *args)
        return True
    except RuntimeError:  # the loop is closed
        return False
