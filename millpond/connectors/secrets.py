"""Secrets of connectors: a script names them, the environment has them, and nothing shows them.

An argument such as `env:MILLPOND_SECRET_KEY` stands for the value of that variable. It is looked
up when the connector is opened, and the connector gets a `Secret`, which prints as its name; plans,
logs and stores have the name only. What a library says of the value (an operating system's error
about a path, say) is masked on its way out of the connector.
"""

import copy
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from millpond.errors import InputError, MillpondError

REFERENCE, ALLOWED = "env:", "MILLPOND_SECRET_"
SHORTEST_MASKED = 4
"""Shorter values are not looked for in messages: they would be found in every word."""
TELLING = 12
"""So many characters at the beginning of a value are enough to know it by, where it is cut."""


class Secret:
    """A value that prints as the name of the variable that has it; ``reveal`` is the only way in.

    >>> str(Secret("env:MILLPOND_SECRET_KEY", "42")), f"{Secret('env:X', '42')}"
    ('env:MILLPOND_SECRET_KEY', 'env:X')
    """

    __slots__ = ("_forms", "_reference")

    def __init__(self, reference: str, value: str) -> None:
        self._reference = reference
        self._forms = [value]

    def reveal(self) -> str:
        """The value, for whoever uses it now."""
        return self._forms[0]

    def stands_also_for(self, text: str) -> None:
        """Something made of the value, such as the path that it leads to, is not shown either."""
        if text not in self._forms:
            self._forms.append(text)

    def masked(self, text: str) -> str:
        """A text without the value, and without what it begins with where it was cut."""
        forms = {*self._forms, *(repr(form)[1:-1] for form in self._forms)}
        for form in sorted(forms, key=len, reverse=True):
            if len(form) >= SHORTEST_MASKED:
                text = _without(text, form, self._reference)
        return text

    def __str__(self) -> str:
        return self._reference

    __repr__ = __str__

    def __format__(self, form: str) -> str:
        return format(self._reference, form)

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[str]]:
        return resolved, (self._reference,)


def is_reference(value: Any) -> bool:
    """Whether an argument names a secret.

    >>> is_reference("env:MILLPOND_SECRET_KEY"), is_reference("key")
    (True, False)
    """
    return isinstance(value, str) and value.startswith(REFERENCE)


def resolved(value: Any) -> Any:
    """The argument, or the secret that it names; other variables are nobody's business."""
    if not is_reference(value):
        return value
    name = value.removeprefix(REFERENCE)
    if not name.startswith(ALLOWED):
        raise InputError(f"{value}: a secret is in a variable whose name begins with {ALLOWED}")
    if name not in os.environ:
        raise InputError(f"{value}: there is no such variable in the environment")
    return Secret(value, os.environ[name])


def revealed(value: Any) -> Any:
    """The argument, or the value of the secret that it is; for the place where it is used."""
    return value.reveal() if isinstance(value, Secret) else value


@contextmanager
def hiding(secrets: Iterable[Secret]) -> Iterator[None]:
    """Whatever is raised within says the names of secrets, not their values."""
    try:
        yield
    except Exception as error:
        listed = list(secrets)
        if not listed:
            raise
        _raise_masked(error, listed)


def without_secrets(text: str, secrets: Iterable[Secret]) -> str:
    """The text with the names of secrets in place of their values."""
    for secret in secrets:
        text = secret.masked(text)
    return text


def _raise_masked(error: Exception, secrets: list[Secret]) -> NoReturn:
    def masked(text: str) -> str:
        return without_secrets(text, secrets)

    if not isinstance(error, MillpondError):
        if masked(str(error)) != str(error):
            raise InputError(f"{type(error).__name__}: {masked(str(error))}") from None
        raise error
    other = copy.copy(error)
    other.args = tuple(masked(each) if isinstance(each, str) else each for each in error.args)
    for name, value in vars(other).items():
        setattr(other, name, masked(value) if isinstance(value, str) else value)
    raise other from None  # what it came from may quote the value too


def _without(text: str, value: str, name: str) -> str:
    """The text with a name in place of a value, or of the part of it that is there."""
    beginning, start = value[:TELLING], 0
    while (found := text.find(beginning, start)) >= 0:
        end = found + len(beginning)
        while end < len(text) and text[end] == value[end - found : end - found + 1]:
            end += 1
        text = text[:found] + name + text[end:]
        start = found + len(name)
    return text
