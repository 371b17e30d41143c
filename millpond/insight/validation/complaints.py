"""The forms that many complaints have."""

from collections.abc import Iterable, Iterator


def recounted(what: str, kept: object, counted: object, whose: str = "") -> tuple[str, ...]:
    """Complains of something that is kept and is not what one gets by counting anew.

    ``whose`` it is comes behind ``what`` where there is something to complain of.
    """
    if kept == counted:
        return ()
    name = f"{what} of {whose}" if whose else what
    return (f"{name}: {kept} is kept, and counted anew it is {counted}",)


def strangers(what: str, names: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    """Complains of names that are not among those there are."""
    for name in sorted(set(names) - set(known)):
        yield f"{what}: there is no {name}"


def different(what: str, some: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """Complains of names that only one of two sides has; ``what`` says which these are."""
    one, other = set(some), set(others)
    for name in sorted(one ^ other):
        yield f"{what}: only the {'first' if name in one else 'second'} has {name}"
