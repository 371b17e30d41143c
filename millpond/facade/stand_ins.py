"""What stands in for what a store does not hold, where it is opened without its owner's script."""

import re
from collections.abc import Iterable

from millpond.catalog import Catalog
from millpond.cql.user_functions import checked_types
from millpond.errors import StateError
from millpond.functions.user_function import UserFunction
from millpond.settings import Settings
from millpond.storage.formats import Record


def settings_of(records: Iterable[Record]) -> Settings:
    """The settings with which a store has to be opened."""
    opened = next((record for record in records if record["kind"] == "open"), None)
    if opened is None:
        return Settings()
    given = {"seed": opened["seed"], "tick": f"{opened['tick']} microseconds"}
    return Settings().with_options(given)


def with_stand_ins(catalog: Catalog, record: Record) -> None:
    """Stands in for the user's functions that a record says are needed: nothing is computed."""
    for facts in record.get("needed", ()) if record["kind"] == "needs" else ():
        stand_in = _stand_in(facts["name"], facts["signature"], facts["digest"])
        catalog.functions[facts["name"]] = stand_in


def _stand_in(name: str, signature: str, digest: str) -> UserFunction:
    found = re.fullmatch(r"(.*?)\w+\((.*)\) (.*)", signature)
    if found is None:
        raise StateError(f"internal: {signature} is no signature of a function")
    parameters, result = checked_types(name, re.split(r", (?!\d)", found[2]), found[3])
    return UserFunction(name, parameters, result, digest, b"", kind=found[1].strip())
