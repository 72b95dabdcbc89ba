"""What can go wrong, as exceptions: one for each code of the API."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Type


class LeaseholdError(Exception):
    """The base of every error of this package."""

    code = ""


class HeldError(LeaseholdError):
    """Somebody else has the resource, and the wait, if there was one, is over."""

    code = "held"

    def __init__(self, message: str, problem: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        said = problem or {}
        self.resource: str = said.get("resource", "")
        self.holder: str = said.get("holder", "")  # who has it
        self.reason: str = said.get("reason", "")  # why
        self.since: Optional[str] = said.get("since")  # RFC 3339
        self.expires: Optional[str] = said.get("expires")  # unless it is renewed
        self.waiting: int = said.get("waiting", 0)  # how many wait
        self.position: int = said.get("position", 0)  # our own place among them; 0: none


class LostError(LeaseholdError):
    """The lease is not ours, or no longer.

    ``how`` is ``expired`` if the holder's own deadline passed, ``released`` if it was released here,
    ``forked`` in a process that was forked from the holder, ``changed`` if somebody gave the lease to
    another holder; else what the server said, such as ``broken`` or ``hold limit``; ``ended`` if it did
    not say.
    """

    code = "lost"

    def __init__(self, message: str, how: str = "ended", by: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.how = how
        self.by = by  # who broke it, or has it now
        self.reason = reason  # why it was broken

    def __str__(self) -> str:
        text = str(self.args[0])
        if self.by:
            text += f" (by {self.by})"
        if self.reason:
            text += f": {self.reason}"
        return text


class NotFoundError(LeaseholdError):
    """There is no such thing."""

    code = "not-found"


class InvalidError(LeaseholdError):
    """The request itself is wrong; the message says what is allowed."""

    code = "invalid"


class DeniedError(LeaseholdError):
    """The caller may not do that, or the server does not know who asks."""

    code = "denied"


class LimitedError(LeaseholdError):
    """Too much or too many was asked for."""

    code = "limited"


class UnavailableError(LeaseholdError):
    """No server could be reached, or none could do it. Nothing happened."""

    code = "unavailable"


class UndecidedError(LeaseholdError):
    """No answer says whether it happened."""

    code = "undecided"


class RefusedError(LeaseholdError):
    """The request is well formed, but what is there contradicts it."""

    code = "refused"

    def __init__(self, message: str, problem: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        # If the wait would never have ended: who waits for what, each for the next.
        self.cycle: List[Dict[str, str]] = (problem or {}).get("cycle", [])


_ALL: List[Type[LeaseholdError]] = [
    HeldError, LostError, NotFoundError, InvalidError, DeniedError, LimitedError, UnavailableError, UndecidedError,
    RefusedError,
]


def transient(error: BaseException) -> bool:
    """Report whether another attempt may succeed."""
    return isinstance(error, (UnavailableError, UndecidedError))


def of_problem(problem: Dict[str, Any]) -> Optional[LeaseholdError]:
    """Return the error that a problem describes; None if it is none of ours."""
    message = str(problem.get("detail", ""))
    for kind in _ALL:
        if kind.code == problem.get("code"):
            return kind(message, problem) if kind in (HeldError, RefusedError) else kind(message)
    return None


def not_leasehold(server: str, status: int) -> LeaseholdError:
    """Return the error of an answer that no Leasehold server gives."""
    message = (
        f"{server} is not a Leasehold server, or a proxy before one answered: HTTP status {status}; "
        "check the address"
    )
    # A proxy that could not reach the server (502, 503), or that refused by itself (429), has not
    # passed the request on. After any other 5xx nobody knows.
    if status in (429, 502, 503):
        return UnavailableError(message)
    # A proxy that gives up an idle connection may say 408 to a request that it has not read.
    if status >= 500 or status == 408:
        return UndecidedError(message)
    if status in (401, 403):
        return DeniedError(message)
    return RefusedError(message)
