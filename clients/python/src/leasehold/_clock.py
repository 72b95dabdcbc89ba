"""The clock by which a holder judges its leases, and the one rule that depends on it."""

from __future__ import annotations

import sys
import time
from typing import Callable

# The part of what the server grants that a holder gives up, so that the clocks of the server and of
# the holder may each be wrong by 0.5 %.
MARGIN = 0.01


def _choose() -> Callable[[], float]:
    # time.monotonic stops while the machine sleeps, on Linux and macOS, and a sleeper would wake up
    # with a lease that has ended.
    names = ["CLOCK_BOOTTIME"] if hasattr(time, "clock_gettime") else []
    if sys.platform == "darwin":
        names.append("CLOCK_MONOTONIC")  # does not stop there
    for name in names:
        clock: int = getattr(time, name, -1)
        try:
            time.clock_gettime(clock)
        except OSError:  # there is none, or a sandbox forbids it
            continue
        return lambda: time.clock_gettime(clock)
    return time.monotonic


now: Callable[[], float] = _choose()


def deadline_after(sent: float, remaining: float) -> float:
    """Return when a hold ends, of which the server said what remains.

    It counts from before the request was sent. The server began to count later, so that the holder's
    deadline is never after the server's.
    """
    return sent + remaining * (1 - MARGIN)
