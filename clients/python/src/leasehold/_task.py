"""Tasks: work that somebody put into a folder, and that the next free worker claims."""

from __future__ import annotations

import base64
import random
import time
import urllib.parse
from typing import TYPE_CHECKING, Any, Dict, Optional, Union

from . import _clock, _fork
from ._claim import HoldOptions
from ._errors import InvalidError, LeaseholdError, LostError, transient
from ._hold import Hold
from ._servers import Answer

if TYPE_CHECKING:
    from ._client import Client

# How long a request about a task is repeated.
_LONGEST = 15.0


class Task:
    """A task that this process does.

    ``hold`` is the hold on it: ``check`` it as often as you like, and show its token to what you write to. If it is
    lost, the task is offered to others, and what this process says of it is refused.
    """

    def __init__(self, client: "Client", hold: Hold, value: bytes) -> None:
        self._client = client
        self._ended = False  # a server said so
        self._generation = _fork.generation()
        self.hold = hold
        self.value = value

    @property
    def path(self) -> str:
        """The folder and the name of the task."""
        return self.hold.resource

    @property
    def token(self) -> int:
        """The fencing token. Reading it raises LostError once the hold is lost."""
        return self.hold.token

    def check(self) -> None:
        """Raise LostError if the hold on the task is lost."""
        self.hold.check()

    def done(self, result: Union[str, bytes] = "") -> None:
        """Say that the task is done, and what it came to, in at most 4 KiB of text.

        Raise LostError if somebody else may do the task by now: nothing has changed then. After an
        UnavailableError or UndecidedError nobody knows, and done may be called again.
        """
        self._finish("done", result)

    def fail(self, reason: Union[str, bytes] = "") -> None:
        """Say that the task failed. It is tried again, behind the others, while it has attempts left."""
        self._finish("failed", reason)

    def release(self) -> None:
        """Give the task back, for another to do. It does not count as an attempt."""
        self._ended = True
        self.hold.release()

    def _finish(self, outcome: str, result: Union[str, bytes]) -> None:
        if self._ended:
            raise InvalidError(f"{self.path} was finished or given back before")
        result = _text(result)
        if self._generation != _fork.generation():
            raise LostError(f"{self.path} is done by the process that this one was forked from", "forked")
        # From here on nobody relies on it. Whether it was lost before, the server decides, by the token.
        self.hold._begin_release(finished=True)
        body = {"id": self.hold.id, "token": self.hold._token, "outcome": outcome, "result": result}
        _ask(self._client, "POST", "/v1/finish", body)
        self._ended = True


class Claiming:
    """Claims a task at the beginning of a with block, and finishes it at its end."""

    def __init__(self, client: "Client", folder: str, options: HoldOptions) -> None:
        if not folder.endswith("/"):
            raise InvalidError(f"tasks are claimed from a folder, such as jobs/: {folder} does not end with a slash")
        self._client = client
        self._folder = folder
        self._options = options
        self._task: Optional[Task] = None

    def __enter__(self) -> Task:
        if self._task is not None:
            raise RuntimeError("one claim() is for one with block: call claim again")
        hold = self._client.acquire(self._folder, **self._options)
        try:
            found = _ask(self._client, "GET", _target(hold.resource), None).value
            self._task = Task(self._client, hold, base64.b64decode(found.get("value") or ""))
            return self._task
        except BaseException:  # the block will not begin, nor end
            hold._begin_release()
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        task = self._task
        assert task is not None
        if task._ended:
            return
        if kind is None:
            task.done()
        elif issubclass(kind, Exception):
            _quietly(lambda: task.fail(f"{kind.__name__}: {error}"[:1000]))
        else:  # Ctrl-C, or sys.exit: that the worker stops is no fault of the task
            _quietly(task.release)


def _text(result: Union[str, bytes]) -> str:
    """What a task came to, as text, before anything is said to a server."""
    if isinstance(result, bytes):
        try:
            return result.decode()
        except UnicodeDecodeError as e:
            raise InvalidError(f"the result of a task is text, and these bytes are no UTF-8: {e}") from None
    if not isinstance(result, str):
        raise InvalidError(f"the result of a task is text, not {type(result).__name__}: such as json.dumps(…)")
    return result


def add(client: "Client", path: str, value: Union[str, bytes], priority: int, attempts: int, by: str) -> None:
    """Add a task."""
    if isinstance(value, str):
        value = value.encode()
    body: Dict[str, Any] = {"value": base64.b64encode(value).decode(), "by": by}
    for name, given in (("priority", priority), ("attempts", attempts)):
        if given:
            body[name] = given
    _ask(client, "PUT", _target(path), body)


def _target(path: str) -> str:
    return "/v1/tasks/" + urllib.parse.quote(path, safe="")


def _quietly(do: Any) -> None:
    """Do what must not hide the exception of a block."""
    try:
        do()
    except LeaseholdError:
        pass  # the task is lost, or ends with its TTL


def _ask(client: "Client", method: str, path: str, body: Optional[Dict[str, Any]]) -> Answer:
    """Send a request that may be repeated until it is answered."""
    until = _clock.now() + _LONGEST
    attempts = 0
    while True:
        attempts += 1
        try:
            return client._servers.attempt(method, path, body, within=5.0)
        except LeaseholdError as e:
            if not transient(e) or _clock.now() >= until:
                raise
        if attempts % client._servers.count() == 0:
            time.sleep(min(0.05 * attempts, 1.0) * random.uniform(0.5, 1.0))
