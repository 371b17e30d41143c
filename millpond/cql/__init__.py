"""CQL: text to checked statements."""

from millpond.cql.apply import apply
from millpond.cql.check.statements import check_script, check_statement
from millpond.cql.text.parse import syntax_tree
from millpond.cql.text.split import is_complete, split_statements

__all__ = [
    "apply",
    "check_script",
    "check_statement",
    "is_complete",
    "split_statements",
    "syntax_tree",
]
