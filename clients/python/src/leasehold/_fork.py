"""What a forked process must not do: renew, release or believe in what its parent holds."""

from __future__ import annotations

import os
import weakref
from typing import Any

_clients: "weakref.WeakSet[Any]" = weakref.WeakSet()
_generation = 0


def register(client: Any) -> None:
    """Have a client's method _forked called in every process that is forked from this one."""
    _clients.add(client)


def clients() -> "list[Any]":
    return list(_clients)


def generation() -> int:
    """Return a number that is another one in a forked process."""
    return _generation


def _in_child() -> None:
    # It runs before any other line of the child. The other threads are gone, and locks that they held
    # will never be released: nothing here may take one.
    global _generation
    _generation += 1
    for client in clients():
        client._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
