"""What operators do, and for whom, in words that do not name what the engine names itself."""

import re
from collections.abc import Iterable

from millpond.identities import GroupId, QueryName
from millpond.planning.physical import Operator
from millpond.sharing.queries import Queries

_GROUP = re.compile(r" of ~\S+")


def operator_label(operator: Operator) -> str:
    """What an operator does, without the names of groups of queries."""
    return without_groups(operator.label())


def without_groups(label: str) -> str:
    """A label as people read it.

    >>> without_groups("Match queries ON a > ?1 of ~22f698@0"), without_groups("Count BY b, ~query")
    ('Match queries ON a > ?1', 'Count BY b, query')
    """
    return _GROUP.sub("", label).replace("~query", "query")


def named_queries(queries: Queries, names: Iterable[QueryName]) -> list[str]:
    """The names of queries, of groups those of all that belong to them; the lock is held."""
    found: list[str] = []
    for name in names:
        group = queries.groups.get(name) if isinstance(name, GroupId) else None
        found += [name] if group is None else group.queries.values()
    return found
