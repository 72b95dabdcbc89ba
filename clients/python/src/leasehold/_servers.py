"""Which server is asked, and one attempt at asking it."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import urllib.parse
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Type

from . import _clock
from ._connection import Abort, Address, Aborted, Connection, Limit, Response, Tick, TimedOut, dial
from ._credential import TokenSource, plain
from ._errors import (
    DeniedError, InvalidError, LeaseholdError, RefusedError, UnavailableError, UndecidedError, not_leasehold,
    of_problem, transient,
)
from ._version import VERSION

# How long a connection is kept for another request.
_KEPT_IDLE = 30.0

# How many connections to one server are kept.
_MOST_IDLE = 16


class Answer(NamedTuple):
    """What a server answered, and when the request was sent that it answered."""

    sent: float
    value: Dict[str, Any]


class _Broken(Exception):
    """The connection ended before the answer did."""


def _unreachable(url: str, e: BaseException) -> str:
    text = f"{url} cannot be reached: {str(e) or 'no answer in time'}"
    if isinstance(e, ConnectionRefusedError):
        text += ": is a server running there? LEASEHOLD_SERVER, or servers of Client, says where to look"
    return text


class Server:
    """One server and the connections to it."""

    def __init__(self, address: Address, tls: Optional[ssl.SSLContext]) -> None:
        self.address = address
        self._tls = tls if address.secure else None
        self._lock = threading.Lock()  # guards what follows
        self._idle: List[Connection] = []
        self._open: Set[Connection] = set()

    def take(self) -> Optional[Connection]:
        """Return a connection that nobody uses; None if there is none."""
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if _clock.now() - connection.idle_since < _KEPT_IDLE:
                    return connection
                self._open.discard(connection)
                connection.close()
        return None

    def dial(self, limit: Limit) -> Connection:
        connection = dial(self.address, self._tls, limit)
        with self._lock:
            self._open.add(connection)
        return connection

    def give_back(self, connection: Connection, reusable: bool) -> None:
        with self._lock:
            if reusable and len(self._idle) < _MOST_IDLE:
                connection.idle_since = _clock.now()
                self._idle.append(connection)
                return
            self._open.discard(connection)
        connection.close()

    def drop_idle(self) -> None:
        """Close what is not in use: it may be dead without an error."""
        with self._lock:
            dropped, self._idle = self._idle, []
            self._open.difference_update(dropped)
        for connection in dropped:
            connection.close()

    def forked(self) -> None:
        """Leave all connections to the parent. Nothing is sent over them."""
        inherited, self._open, self._idle = self._open, set(), []
        self._lock = threading.Lock()
        for connection in inherited:
            connection.close()


class Servers:
    """All requests go to one server until it fails, then to the next."""

    def __init__(
        self, addresses: Sequence[str], namespace: str, tls: Optional[ssl.SSLContext], token: Optional[TokenSource],
        insecure: bool,
    ) -> None:
        self._all = [Server(Address(a), tls) for a in addresses]
        if not self._all:
            raise InvalidError("no server is named")
        self._namespace = namespace
        self._token = token
        self._insecure = insecure
        self._lock = threading.Lock()  # guards what follows
        self._turn = random.randrange(len(self._all))  # counts failovers; the remainder is the index

    def count(self) -> int:
        return len(self._all)

    def attempt(
        self, method: str, path: str, body: Optional[Dict[str, Any]] = None, *, within: float,
        query: Optional[Dict[str, str]] = None, abort: Optional[Abort] = None, tick: Optional[Tick] = None,
    ) -> Answer:
        """Ask one server, once. After a transient failure the next attempt goes to another server.

        A request must be safe to repeat: it is sent a second time if an idle connection turns out to
        have been closed, or if the token was refused and there is another.
        """
        turn, server = self._choose()
        limit = Limit(within, abort, tick)
        path = self._target(server, path, query)
        try:
            return self._ask(server, method, path, body, limit)
        except LeaseholdError as e:
            if transient(e):
                self._leave(turn)
                if limit.over():
                    server.drop_idle()
            raise

    def stream(self, path: str, query: Dict[str, str], within: float, abort: Abort) -> Connection:
        """Send a request for an answer without an end. The connection is the caller's to close."""
        _, server = self._choose()
        limit = Limit(within, abort)
        request = self._request(server, "GET", self._target(server, path, query), None, self._show(server, ""))
        connection = None
        try:
            connection = server.dial(limit)
            limit.attach(connection.sock)
            connection.send(request, limit)
            return connection
        except BaseException as e:
            if connection is not None:
                server.give_back(connection, False)
            if isinstance(e, (OSError, TimedOut)):
                raise UnavailableError(_unreachable(server.address.url, e)) from e
            raise
        finally:
            limit.attach(None)

    def close_stream(self, connection: Connection) -> None:
        for server in self._all:
            server.give_back(connection, False)

    def close(self) -> None:
        for server in self._all:
            server.drop_idle()

    def forked(self) -> None:
        self._lock = threading.Lock()
        for server in self._all:
            server.forked()
        forked = getattr(self._token, "forked", None)
        if forked is not None:
            forked()

    def _choose(self) -> Tuple[int, Server]:
        with self._lock:
            return self._turn, self._all[self._turn % len(self._all)]

    def _leave(self, turn: int) -> None:
        # Requests that fail together skip one server, not one each.
        with self._lock:
            if self._turn == turn:
                self._turn += 1

    def _target(self, server: Server, path: str, query: Optional[Dict[str, str]]) -> str:
        query = dict(query or {})
        if self._namespace:
            query["namespace"] = self._namespace
        target = server.address.prefix + path
        return target + "?" + urllib.parse.urlencode(query) if query else target

    def _ask(
        self, server: Server, method: str, path: str, body: Optional[Dict[str, Any]], limit: Limit
    ) -> Answer:
        token = self._show(server, "")
        sent, response = self._exchange(server, method, path, body, token, limit)
        if response.status == 401 and token:
            other = self._show(server, token)  # it may have ended just now
            if other and other != token:
                sent, response = self._exchange(server, method, path, body, other, limit)
        return Answer(sent, self._read(server, response))

    def _exchange(
        self, server: Server, method: str, path: str, body: Optional[Dict[str, Any]], token: str, limit: Limit
    ) -> Tuple[float, Response]:
        request = self._request(server, method, path, body, token)
        connection = server.take()
        failure: Type[LeaseholdError] = UnavailableError  # nothing was sent yet
        if connection is not None:
            try:
                return self._send(server, connection, method, request, limit)
            except _Broken:
                # The server closed it while it was idle, and probably the others too. Or it died just now.
                server.drop_idle()
                failure = UndecidedError
        try:
            connection = server.dial(limit)
        except (OSError, TimedOut) as e:
            raise failure(_unreachable(server.address.url, e)) from e
        try:
            return self._send(server, connection, method, request, limit)
        except _Broken as e:
            raise UndecidedError(f"{server.address.url} gave no answer: {e}") from e

    def _send(
        self, server: Server, connection: Connection, method: str, request: bytes, limit: Limit
    ) -> Tuple[float, Response]:
        reusable = False
        try:
            limit.attach(connection.sock)
            # Just before it is sent, for each attempt: the time that an earlier one took must not be
            # counted as granted.
            sent = _clock.now()
            response = connection.exchange(method, request, limit)
            reusable = response.reusable
            return sent, response
        except TimedOut:
            raise UndecidedError(f"{server.address.url} gave no answer in time") from None
        except (OSError, http.client.HTTPException, ValueError) as e:
            if limit.aborted():
                raise Aborted from None
            raise _Broken(str(e) or type(e).__name__) from e
        finally:
            limit.attach(None)
            server.give_back(connection, reusable)

    def _request(
        self, server: Server, method: str, path: str, body: Optional[Dict[str, Any]], token: str
    ) -> bytes:
        lines = [
            f"{method} {path} HTTP/1.1", f"Host: {server.address.netloc}", f"User-Agent: leasehold-python/{VERSION}",
        ]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        data = b""
        if body is not None:
            data = json.dumps(body).encode()
            lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        return "\r\n".join(lines + ["", ""]).encode("ascii") + data

    def _show(self, server: Server, rejected: str) -> str:
        """Return the token for a server; empty if there is none."""
        if self._token is None:
            return ""
        try:
            token = self._token(rejected)
        except LeaseholdError:
            raise
        except Exception as e:
            # Where tokens come from may be back soon: what renews leases tries again.
            raise UnavailableError(f"there is no token to prove who asks: {e}") from e
        if not token:
            return ""
        if not plain(token):
            raise InvalidError("the token has characters that no token has: check where it comes from")
        if not self._insecure and not server.address.private():
            raise RefusedError(
                f"the token is not sent to {server.address.url} without TLS, because others on the way could read "
                f"it: write the server as https://{server.address.netloc}, or say insecure=True"
            )
        return token

    def _read(self, server: Server, response: Response) -> Dict[str, Any]:
        """Return the value of an answer, or raise the error that it is."""
        try:
            value = json.loads(response.body)
        except ValueError:
            value = None
        if response.status == 200:
            if not isinstance(value, dict):
                raise UndecidedError(f"{server.address.url} gave an answer that is not JSON")
            return value
        error = of_problem(value) if isinstance(value, dict) else None
        if error is None and b"HTTP request to an HTTPS server" in response.body:
            error = DeniedError(f"{server.address.url} requires TLS: write it as https://{server.address.netloc}")
        raise error or not_leasehold(server.address.url, response.status)


__all__ = ["Aborted", "Abort", "Answer", "Servers", "Tick"]
