"""Who asks: the token that requests carry, and where it comes from."""

from __future__ import annotations

import os
import threading
from typing import Callable, Mapping, Optional

from ._errors import InvalidError

# A source returns the token to send; "" is none. It is given the token that a server has just
# refused, or "": a source that keeps one has to get another then.
TokenSource = Callable[[str], str]

# More than the largest JWT has; the file may be a mistake such as a log.
_LARGEST_FILE = 64 << 10


class TokenFile:
    """A file with a token that somebody may replace. It is read again when it changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()  # guards what follows
        self._token = ""
        self._read = (0, 0)  # when it was changed, and its size then

    def __call__(self, rejected: str) -> str:
        with self._lock:
            try:
                self._read_again(rejected)
            except (OSError, ValueError) as e:
                # What was read before is used on while the file cannot be read, as in the moment in
                # which somebody replaces it.
                if not self._token:
                    raise InvalidError(f"the token cannot be read: {e}") from e
            return self._token

    def forked(self) -> None:
        self._lock = threading.Lock()

    def _read_again(self, rejected: str) -> None:
        info = os.stat(self._path)
        seen = (info.st_mtime_ns, info.st_size)
        # A file that was replaced within one tick of its clock looks the same; a refused token tells.
        if self._token and seen == self._read and rejected != self._token:
            return
        if info.st_size > _LARGEST_FILE:
            raise ValueError(f"{self._path} is not a file with a token")
        with open(self._path, encoding="ascii", errors="replace") as f:
            text = f.read(_LARGEST_FILE).strip()
        if not text:
            raise ValueError(f"{self._path} is empty")
        self._token, self._read = text, seen


def of_environment(env: Mapping[str, str]) -> Optional[TokenSource]:
    """Return the source that the environment names; None if it names none.

    Below ``leasehold run``, LEASEHOLD_TOKEN is the fencing token of the lease, a number, and
    LEASEHOLD_ACCESS_TOKEN has what it was before.
    """
    for name in ("LEASEHOLD_TOKEN", "LEASEHOLD_ACCESS_TOKEN"):
        token = env.get(name, "").strip()
        if token and token.strip("0123456789\n"):
            return lambda rejected: token
    path = env.get("LEASEHOLD_TOKEN_FILE", "")
    return TokenFile(path) if path else None


def plain(token: str) -> bool:
    """Report whether a token can stand in a header."""
    return all("!" <= c <= "~" for c in token)
