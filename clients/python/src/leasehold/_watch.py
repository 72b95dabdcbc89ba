"""Hears early of what others do to a lease. Nothing depends on it: renewals tell everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from . import _clock
from ._connection import Abort, Aborted, Connection
from ._errors import LeaseholdError

if TYPE_CHECKING:
    from ._client import Client

# A hold that is shorter is not worth a connection.
_FIRST_AFTER = 1.0

_PAUSE = 10.0

# A server says something every 15 s. Without that for so long, the connection is dead.
_SILENCE = 45.0


class Watch:
    """A stream of the events of one resource, read by the thread of the hold."""

    def __init__(self, client: "Client", resource: str, lease: str, abort: Abort) -> None:
        self._client = client
        self._resource = resource
        self._lease = lease.encode()
        self._abort = abort
        self._open_at: Optional[float] = _clock.now() + _FIRST_AFTER if client._watches else None
        self._connection: Optional[Connection] = None
        self._tail = b""  # what an id may begin in
        self._heard = 0.0

    def is_open(self) -> bool:
        return self._connection is not None

    def open(self, within: float) -> bool:
        """Open the stream if it is time to, and report whether it is open now."""
        if self._open_at is None or _clock.now() < self._open_at:
            return False
        self._open_at = _clock.now() + _PAUSE
        try:
            self._connection = self._client._servers.stream(
                "/v1/watch", {"resource": self._resource}, within, self._abort)
            return self._greeted(within)
        except (LeaseholdError, Aborted, OSError):
            self.close()
            return False

    def wait(self, seconds: float) -> bool:
        """Wait for events, and report whether one is about the lease."""
        assert self._connection is not None
        try:
            self._abort.attach(self._connection.sock)
            data = self._connection.receive(seconds)
        except (Aborted, OSError):
            data = b""
        finally:
            self._abort.attach(None)
        if data is None and _clock.now() - self._heard < _SILENCE:
            return False
        if not data:
            self.close()
            return False
        self._heard = _clock.now()
        # The id is random, so that it stands nowhere else; how the stream is written does not matter.
        seen = self._tail + data
        self._tail = seen[-len(self._lease):]
        if self._lease not in seen:
            return False
        self._tail = b""
        return True

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._client._servers.close_stream(connection)

    def _greeted(self, within: float) -> bool:
        """Report whether the server has begun to send events."""
        until = _clock.now() + within
        while b"event: hello" not in self._tail:
            left = until - _clock.now()
            if left <= 0 or not self._more(left):
                self.close()
                return False
        self._tail, self._heard = b"", _clock.now()
        return True

    def _more(self, seconds: float) -> bool:
        assert self._connection is not None
        self._abort.attach(self._connection.sock)
        try:
            data = self._connection.receive(seconds)
        finally:
            self._abort.attach(None)
        self._tail += data or b""
        if self._tail.startswith(b"HTTP/1.1 4"):
            self._open_at = None  # the server does not want it
            return False
        return bool(data) and len(self._tail) < 64 << 10
