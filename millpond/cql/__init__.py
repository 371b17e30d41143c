"""CQL: text to checked statements."""

from millpond.cql.analyse import check_script, check_statement
from millpond.cql.apply import apply
from millpond.cql.parse import syntax_tree
from millpond.cql.split import is_complete, split_statements

__all__ = [
    "apply",
    "check_script",
    "check_statement",
    "is_complete",
    "split_statements",
    "syntax_tree",
]
