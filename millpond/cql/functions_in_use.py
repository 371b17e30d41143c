"""Which functions of the user are called by what is declared."""

from millpond.catalog import Catalog, QueryEntry, ViewEntry
from millpond.cql.needed_functions import needed_functions
from millpond.cql.statements import Action, Create
from millpond.functions.user_function import UserFunction


def functions_in_use(catalog: Catalog) -> list[UserFunction]:
    """The functions of the user that views and queries call."""
    if not catalog.functions:
        return []
    plans = [entry.plan for kind in (ViewEntry, QueryEntry) for entry in catalog.of_kind(kind)]
    return list(dict.fromkeys(each for plan in plans for each in needed_functions(plan)))


def functions_called_by(action: Action) -> list[UserFunction]:
    """The functions of the user that a statement declares something with."""
    match action:
        case Create(ViewEntry(plan=plan) | QueryEntry(plan=plan)):
            return needed_functions(plan)
    return []
