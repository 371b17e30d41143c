"""Which text is read as a TIMESTAMP: one pattern, for Python's and Java's regular expressions."""

_BLANK = r"[\x00-\x20\x7f]*"
_DAY = r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_CLOCK = r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?"
_HOURS = r"(?:0?[0-9]|1[0-7])(?::[0-5]?[0-9])?|(?:0[0-9]|1[0-7])[0-5][0-9]|18(?::?00)?"
_OFFSET = rf" *(Z|UTC|[+-](?:{_HOURS}))?"

TIMESTAMP_TEXT = f"{_BLANK}{_DAY}{_CLOCK}{_OFFSET})?)?)?)?)?{_BLANK}"
"""A year, perhaps with month, day, time of day and offset from UTC, each only with those before.

Its groups are these parts; that there is such a day and such a time is not checked."""
