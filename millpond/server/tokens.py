"""Who may ask: tokens in a file, of which only hashes are kept, each with a role.

A line is ``role sha256-of-the-token [name]``; ``millpond token ROLE`` makes both. Tokens are long
and random, so a plain hash is enough.
"""

import hashlib
import hmac
import re
import secrets
from pathlib import Path

from millpond.errors import InputError

ROLES = ("read", "write", "admin")
"""Each may do what those before it may."""


def new_token(role: str, name: str = "") -> tuple[str, str]:
    """A new token, and the line for the token file."""
    token = secrets.token_urlsafe(32)
    return token, f"{role} {hashed(token)} {name}".strip()


def hashed(token: str) -> str:
    """What the file keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


class Tokens:
    """The tokens of a server; without a file everybody has every role."""

    def __init__(self, lines: list[tuple[str, str]] | None = None) -> None:
        self._lines = lines

    @property
    def are_needed(self) -> bool:
        """Whether requests need a token."""
        return self._lines is not None

    def role(self, token: str | None) -> str | None:
        """The role of who shows a token; None if it is none of ours."""
        if self._lines is None:
            return "admin"
        found = None
        given = hashed(token or "")
        for role, kept in self._lines:  # all are compared, whichever it is
            if hmac.compare_digest(given, kept):
                found = role
        return found


def read_tokens(file: Path) -> Tokens:
    """The tokens of a file; one that others can read is refused."""
    try:
        if file.stat().st_mode & 0o077:
            raise InputError(f"{file}: others can read this token file; chmod 600 {file}")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        parts = line.split()
        if not parts or line.startswith("#"):
            continue
        if len(parts) < 2 or parts[0] not in ROLES or not re.fullmatch("[0-9a-f]{64}", parts[1]):
            raise InputError(
                f"{file}, line {number}: write role ({', '.join(ROLES)}), hash and perhaps a "
                "name; `millpond token` makes such lines"
            )
        lines.append((parts[0], parts[1]))
    if not lines:
        raise InputError(f"{file}: there is no token in it; `millpond token` makes one")
    return Tokens(lines)
