"""One HTTP connection to one server, with limits that hold whatever the server does."""

from __future__ import annotations

import email.message
import encodings.idna  # noqa: F401  or a name's first lookup imports it, and a fork in that moment leaves it locked
import http.client
import io
import socket
import ssl
import threading
import urllib.parse
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from . import _clock
from ._errors import InvalidError

# A timeout of a socket does not count while the machine sleeps. So the clock is looked at this often.
_GLANCE = 1.0

# How long it may take to connect: a server that does not answer must leave time to ask another.
_DIAL_LIMIT = 5.0

_LARGEST_ANSWER = 4 << 20


class TimedOut(Exception):
    """A request took longer than its limit."""


class Aborted(Exception):
    """Another thread ended the request."""


class Interrupted(Exception):
    """What was to be done while a request waits failed, and ended the request."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Abort:
    """Lets another thread end what waits for a socket, now and in future."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards what follows
        self._socket: Optional[socket.socket] = None
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        with self._lock:
            self._set = True
            if self._socket is not None:
                try:
                    # Not that of SSLSocket, which would take away what the other thread reads with.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                except OSError:
                    pass  # it is closed already

    def attach(self, sock: Optional[socket.socket]) -> None:
        """Name the socket to wait for from now on; None: no other."""
        with self._lock:
            if self._set and sock is not None:
                raise Aborted
            self._socket = sock


class Limit:
    """How long one request may take, who may end it, and what to do while it waits."""

    def __init__(self, within: float, abort: Optional[Abort] = None, tick: Optional["Tick"] = None) -> None:
        self._until = _clock.now() + within
        self._abort = abort
        self._tick = tick

    def left(self) -> float:
        """Return how many seconds are left. Raise if there are none."""
        if self.aborted():
            raise Aborted
        left = self._until - _clock.now()
        if left <= 0:
            raise TimedOut
        return left

    def aborted(self) -> bool:
        return self._abort is not None and self._abort.is_set()

    def over(self) -> bool:
        return _clock.now() >= self._until

    def attach(self, sock: Optional[socket.socket]) -> None:
        if self._abort is not None:
            self._abort.attach(sock)

    def next_look(self) -> float:
        """Do what is due meanwhile, and return how many seconds to wait for the socket."""
        if self._tick is not None:
            self._tick.run()
            return max(min(self.left(), self._tick.wait(), _GLANCE), 0.001)
        return max(min(self.left(), _GLANCE), 0.001)


class Tick:
    """Something to do again and again while a request waits. It may raise, which ends the request."""

    def __init__(self, first: float, do: Callable[[], float]) -> None:
        self._at = _clock.now() + first
        self._do = do  # returns in how many seconds it is due again

    def wait(self) -> float:
        return self._at - _clock.now()

    def run(self) -> None:
        if self.wait() > 0:
            return
        try:
            pause = self._do()
        except Exception as e:
            raise Interrupted(e) from e  # else it could be taken for a failure of the connection
        self._at = _clock.now() + pause


class Address:
    """Where a server is, from a URL, a host or host:port."""

    def __init__(self, text: str) -> None:
        text = text.strip()
        bare = "://" not in text
        if bare and text.count(":") > 1 and not text.startswith("["):
            text = f"[{text}]"  # an IPv6 address alone
        try:
            url = urllib.parse.urlsplit("http://" + text if bare else text)
            port = url.port
        except ValueError:
            raise InvalidError(f"server {text!r} is not an address: {_WRITE}") from None
        if url.scheme not in ("http", "https") or not url.hostname or url.netloc.endswith(":"):
            raise InvalidError(f"server {url.geturl()!r} is not an address: {_WRITE}")
        if url.query or url.fragment:
            raise InvalidError("the address of a server has something after the path: leave it out")
        if url.username or url.password:
            raise InvalidError("the address of a server has a user or password: leave them out")
        self.secure = url.scheme == "https"
        self.host = url.hostname
        self.port = port or (4653 if bare else 443 if self.secure else 80)
        self.prefix = url.path.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.secure else 80
        self.netloc = host if self.port == default else f"{host}:{self.port}"
        self.url = f"{url.scheme}://{self.netloc}{self.prefix}"

    def private(self) -> bool:
        """Report whether nobody on the way can read what is sent."""
        if self.secure or self.host in ("localhost", "::1", "::ffff:127.0.0.1"):
            return True
        try:
            return socket.inet_aton(self.host)[0] == 127 and self.host.count(".") == 3
        except OSError:
            return False


_WRITE = "write it as http://host:port, or as a host alone, which means port 4653"


class Response(NamedTuple):
    """An answer of a server."""

    status: int
    headers: email.message.Message
    body: bytes
    reusable: bool  # whether the connection can be used again


class Connection:
    """A connection. It is used by one thread at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.idle_since = 0.0

    def close(self) -> None:
        self.sock.close()

    def send(self, request: bytes, limit: Limit) -> None:
        self.sock.settimeout(limit.left())
        try:
            self.sock.sendall(request)
        except socket.timeout:
            raise TimedOut from None

    def exchange(self, method: str, request: bytes, limit: Limit) -> Response:
        self.send(request, limit)
        response = http.client.HTTPResponse(_Source(self.sock, limit), method=method)  # type: ignore[arg-type]
        try:
            response.begin()
            body = response.read(_LARGEST_ANSWER + 1)
            if len(body) > _LARGEST_ANSWER:
                raise http.client.HTTPException("the answer is too long")
            return Response(response.status, response.headers, body, not response.will_close)
        finally:
            response.close()

    def receive(self, seconds: float) -> Optional[bytes]:
        """Return what comes next, b"" at the end, None if nothing comes in time."""
        self.sock.settimeout(max(seconds, 0.001))
        try:
            return self.sock.recv(64 << 10)
        except socket.timeout:
            return None


class _Source:
    """What http.client reads an answer from: a socket whose limit is one for the whole answer."""

    def __init__(self, sock: socket.socket, limit: Limit) -> None:
        self._raw = _Raw(sock, limit)

    def makefile(self, mode: str) -> Any:
        return io.BufferedReader(self._raw)


class _Raw(io.RawIOBase):
    def __init__(self, sock: socket.socket, limit: Limit) -> None:
        self._sock = sock
        self._limit = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            self._sock.settimeout(self._limit.next_look())
            try:
                return self._sock.recv_into(buffer)
            except socket.timeout:
                continue


def dial(address: Address, tls: Optional[ssl.SSLContext], limit: Limit) -> Connection:
    """Connect to a server. An OSError says why it cannot be reached."""
    problem: Optional[OSError] = None
    for family, kind, proto, _, where in _resolve(address, limit):
        sock = socket.socket(family, kind, proto)
        try:
            limit.attach(sock)
            sock.settimeout(min(limit.left(), _DIAL_LIMIT))
            sock.connect(where)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                # It takes the file descriptor over, and handshakes within the timeout.
                sock = tls.wrap_socket(sock, server_hostname=address.host)
            return Connection(sock)
        except OSError as e:
            sock.close()
            problem = e
            limit.left()  # raises if another thread ended it, or there is no time for the next
        except BaseException:
            sock.close()
            raise
        finally:
            limit.attach(None)
    raise problem or OSError(f"{address.host} has no address")


_Found = List[Tuple[Any, Any, int, str, Any]]


def _resolve(address: Address, limit: Limit) -> _Found:
    """Look up the addresses of a host, within a limit, which the resolver itself does not have."""
    try:
        return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass  # it is a name
    found: List[_Found] = []
    failed: List[OSError] = []

    def look() -> None:
        try:
            found.append(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
        except OSError as e:
            failed.append(e)
        except UnicodeError as e:  # a name that IDNA does not allow
            failed.append(OSError(str(e)))

    try:
        thread = threading.Thread(target=look, daemon=True, name="leasehold-resolve")
        thread.start()
        thread.join(min(limit.left(), _DIAL_LIMIT))
    except RuntimeError:  # no thread can be started any more, as at the interpreter's end
        look()
    if found:
        return found[0]
    raise failed[0] if failed else OSError(f"the name {address.host} could not be resolved in time")
