"""The client: where the servers are, who asks, and what is held."""

from __future__ import annotations

import atexit
import contextvars
import getpass
import logging
import os
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Set, Tuple, Union

from . import _clock, _credential, _fork, _task
from ._claim import Claim, HoldOptions, Options, seconds
from ._connection import Abort
from ._errors import InvalidError, LeaseholdError, LostError, NotFoundError, transient
from ._hold import Hold
from ._servers import Servers
from ._task import Claiming

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._asyncio import AsyncHolding

_log = logging.getLogger("leasehold")

_DEFAULT_SERVER = "http://127.0.0.1:4653"

# How long the end of a client, or of the interpreter, waits for what has to be released.
_CLOSE_TIMEOUT = 5.0

# How long to try to take back an acquire that failed. What it got ends by itself.
_LONGEST_WITHDRAWAL = 300.0

# The party of the hold whose with block this is.
_party: "contextvars.ContextVar[str]" = contextvars.ContextVar("leasehold_party", default="")


class Client:
    """Talks to the servers of one cluster. Threads share it.

    What is not given comes from the environment: LEASEHOLD_SERVER, with commas between several;
    LEASEHOLD_NAMESPACE; LEASEHOLD_HOLDER; LEASEHOLD_TOKEN, or LEASEHOLD_TOKEN_FILE, which is read again when
    it changes; LEASEHOLD_CA, LEASEHOLD_CERT and LEASEHOLD_KEY for servers with https.

    ``token`` is what proves who asks, or a function that returns it. The function is called for each
    request, with the token that a server has just refused, or "". It is sent only over TLS or to this
    machine, unless ``insecure`` is set.

    ``watch`` has the servers tell of a break at once, over one more connection for each hold that lasts
    longer than a second. Without it a break is noticed with the next renewal, after a third of the TTL.
    """

    def __init__(
        self,
        servers: Union[str, Sequence[str], None] = None,
        *,
        namespace: Optional[str] = None,
        holder: Optional[str] = None,
        token: Union[str, _credential.TokenSource, None] = None,
        token_file: Optional[str] = None,
        ca: Optional[str] = None,
        cert: Optional[str] = None,
        key: Optional[str] = None,
        insecure: bool = False,
        watch: bool = True,
    ) -> None:
        env = os.environ
        if servers is None:
            servers = env.get("LEASEHOLD_SERVER", "").strip() or _DEFAULT_SERVER
        if isinstance(servers, str):
            servers = servers.split(",")
        tls = None
        if any("https://" in address for address in servers):
            tls = _tls(ca or env.get("LEASEHOLD_CA"), cert or env.get("LEASEHOLD_CERT"), key or env.get("LEASEHOLD_KEY"))
        if namespace is None:
            namespace = env.get("LEASEHOLD_NAMESPACE", "")
        self._servers = Servers(servers, namespace, tls, _token_source(token, token_file, env), insecure)
        self._holder = holder or env.get("LEASEHOLD_HOLDER") or None
        self._watches = watch
        self._lock = threading.Lock()  # guards what follows
        self._holds: Set[Hold] = set()
        self._withdrawals: Set[threading.Event] = set()
        _fork.register(self)

    def hold(self, resource: str, **options: "Unpack[HoldOptions]") -> "Holding":
        """Return what acquires a resource for a with block; see leasehold.hold."""
        return Holding(self, resource, options)

    def ahold(self, resource: str, **options: "Unpack[HoldOptions]") -> "AsyncHolding":
        """Return what acquires a resource for an async with block; see leasehold.ahold."""
        from ._asyncio import AsyncHolding  # those who do not use it need not load asyncio

        return AsyncHolding(self, resource, options)

    def acquire(self, resource: str, **options: "Unpack[HoldOptions]") -> Hold:
        """Acquire a resource; see leasehold.acquire."""
        return self._acquire(self._options(resource, options))

    def claim(self, folder: str, **options: "Unpack[HoldOptions]") -> Claiming:
        """Return what claims the next task of a folder for a with block; see leasehold.claim."""
        return Claiming(self, folder, options)

    def add_task(self, path: str, value: Union[str, bytes] = b"", *, priority: int = 0, attempts: int = 0) -> None:
        """Add a task; see leasehold.add_task."""
        _task.add(self, path, value, priority, attempts, self._holder or _this_process())

    def close(self, timeout: float = _CLOSE_TIMEOUT) -> None:
        """Release everything that is held, and close the connections. The client can be used again."""
        with self._lock:
            holds, waits = list(self._holds), list(self._withdrawals)
        for hold in holds:
            hold._begin_release()
            waits.append(hold._freed)
        until = time.monotonic() + timeout
        for freed in waits:
            freed.wait(max(0.0, until - time.monotonic()))
        self._servers.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()

    # What follows is for this package.

    def _options(self, resource: str, options: HoldOptions) -> Options:
        holder = options.get("holder") or self._holder or _this_process()
        party = options.get("party") or _party.get()
        return Options(resource, **{**options, "holder": holder, "party": party})  # type: ignore[arg-type]

    def _acquire(self, options: Options, abort: Optional[Abort] = None) -> Hold:
        began = _clock.now()
        claims = 0
        while True:
            claim = Claim(self, options, began, abort)
            claims += 1
            try:
                hold = claim.ask()
                if hold is not None:
                    return hold
            except BaseException as e:
                claim.withdraw(e)
                raise
            claim.withdraw(None)
            time.sleep(min(0.05 * claims, 1.0))

    def _release(self, lease: str, until: float, withdraw: bool = False, within: float = 5.0) -> None:
        """Release a lease, or a wait. Try again until a server has answered, or until a moment; at least once."""
        body = {"id": lease}
        if withdraw:
            body["withdraw"] = True  # type: ignore[assignment]
        attempts = 0
        while True:
            attempts += 1
            try:
                self._servers.attempt("POST", "/v1/release", body, within=within)
                return
            except (LostError, NotFoundError):
                return  # it has ended already
            except LeaseholdError as e:
                if _clock.now() >= until:
                    return
                if not transient(e):
                    _log.warning("lease %s could not be released, and ends with its TTL: %s", lease, e)
                    return
            servers = self._servers.count()
            if attempts % servers == 0:
                time.sleep(min(0.05 * 2 ** min(attempts // servers, 6), 1.0))

    def _withdraw(self, lease: str, options: Options) -> None:
        """Take back, in the background, what a failed acquire may have got or may still get."""
        lasts = 30.0 if options.ttl is None or isinstance(options.ttl, str) else seconds(options.ttl)
        until = _clock.now() + min(max(lasts, 15.0), _LONGEST_WITHDRAWAL)
        done = threading.Event()
        with self._lock:
            self._withdrawals.add(done)

        def run() -> None:
            try:
                self._release(lease, until, withdraw=True)
            finally:
                with self._lock:
                    self._withdrawals.discard(done)
                done.set()

        try:
            threading.Thread(target=run, daemon=True, name="leasehold-withdraw").start()
        except RuntimeError:  # there can be no more threads
            until = _clock.now()
            run()

    def _ending(self, resource: str, lease: str) -> Optional[Tuple[str, str, str]]:
        """Return how a lease or a wait ended, by whom and why; None if the server does not say."""
        try:
            events = self._servers.attempt("GET", "/v1/history", query={"resource": resource}, within=2.0).value
        except LeaseholdError:
            return None
        for event in reversed(events.get("items") or []):
            if event.get("id") == lease and event.get("kind") in ("ended", "left"):
                return event.get("how") or "ended", event.get("by") or "", event.get("reason") or ""
        return None

    def _add(self, hold: Hold) -> None:
        with self._lock:
            self._holds.add(hold)

    def _remove(self, hold: Hold) -> None:
        with self._lock:
            self._holds.discard(hold)

    def _forked(self) -> None:
        """Forget what the parent holds; see _fork."""
        inherited, self._holds, self._withdrawals = self._holds, set(), set()
        self._lock = threading.Lock()
        for hold in inherited:
            hold._forked()
        self._servers.forked()


class Holding:
    """Acquires at the beginning of a with block, and releases at its end."""

    def __init__(self, client: Client, resource: str, options: HoldOptions) -> None:
        self._client = client
        self._resource = resource
        self._options = options
        self._hold: Optional[Hold] = None

    def __enter__(self) -> Hold:
        if self._hold is not None:
            raise RuntimeError("one hold() is for one with block: call hold again")
        outer = _party.get()
        self._hold = hold = self._client.acquire(self._resource, **self._options)
        try:
            # What is acquired in the block belongs to the same party, so that a deadlock is noticed.
            _party.set(hold.party)
            self._outer = outer
            return hold
        except BaseException:  # such as a KeyboardInterrupt: the block will not begin, nor end
            hold._begin_release()
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        assert self._hold is not None
        _party.set(self._outer)
        self._hold.__exit__(kind, error, trace)


def _token_source(
    token: Union[str, _credential.TokenSource, None], token_file: Optional[str], env: Mapping[str, str]
) -> Optional[_credential.TokenSource]:
    if token is not None and token_file is not None:
        raise InvalidError("both a token and a file with a token are given: leave one out")
    if callable(token):
        return token
    if token is not None:
        fixed = token.strip()
        return lambda rejected: fixed
    if token_file is not None:
        return _credential.TokenFile(token_file)
    return _credential.of_environment(env)


def _tls(ca: Optional[str], cert: Optional[str], key: Optional[str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if cert or key:
            context.load_cert_chain(cert or "", key or None)
    except (OSError, ValueError) as e:
        raise InvalidError(f"the certificates cannot be read (ca {ca!r}, cert {cert!r}, key {key!r}): {e}") from e
    return context


def _this_process() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = "unknown"
    host = socket.gethostname().split(".")[0] or "unknown"
    return f"{user}@{host}:{os.getpid()}"


@atexit.register
def _at_exit() -> None:
    # Threads that are not daemons have ended by now, so that nobody works under these leases.
    until = time.monotonic() + _CLOSE_TIMEOUT
    for client in _fork.clients():
        client.close(max(0.0, until - time.monotonic()))
