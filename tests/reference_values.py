"""Values in the reference evaluator: SQL's logic, arithmetic, functions and aggregates.

NULL is None. Numbers are Python's, so that 1 and 1.0 are equal as docs/semantics.md asks. What has
no value raises ``NoValueError``.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
import operator
import re
import zlib
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from zoneinfo import ZoneInfo

COMPARE = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
BITS = {"INT": 31, "INTEGER": 31, "BIGINT": 63}


class NoValueError(Exception):
    """An expression fails; ON ERROR says what follows from it."""


class AggregateOverflowError(Exception):
    """A sum that BIGINT does not hold; it stops the query under any policy."""


class InOrder:
    """Values that are in order by a key."""

    __slots__ = ()

    def __lt__(self, other):
        return self.key() < other.key()

    def __gt__(self, other):
        return other < self

    def __le__(self, other):
        return not other < self

    def __ge__(self, other):
        return not self < other


class Array(InOrder, tuple):
    """An ARRAY. Of two the one is less that has the lesser element where they first differ, or
    ends there; NULL is the least element, and equals itself."""

    __slots__ = ()

    def key(self):
        """What tuples of Python are in order by."""
        return [(each is not None, 0 if each is None else each) for each in self]


class Named(InOrder, Mapping):
    """A STRUCT or MAP: values by names, or by keys in their order. Of two the one is less that has
    the lesser key, or value, where they first differ, or ends there; NULL is the least value."""

    def __init__(self, pairs):
        self.pairs = tuple(dict(pairs).items())

    def __getitem__(self, key):
        return dict(self.pairs)[key]

    def __iter__(self):
        return iter(dict(self.pairs))

    def __len__(self):
        return len(self.pairs)

    def __repr__(self):
        return f"{type(self).__name__}({self.pairs})"

    def __hash__(self):
        return hash(self.pairs)

    def __eq__(self, other):
        return isinstance(other, Named) and self.pairs == other.pairs

    def key(self):
        """What pairs of Python are in order by."""
        return [(k, v is not None, 0 if v is None else v) for k, v in self.pairs]


class Struct(Named):
    """A STRUCT."""


class Map(Named):
    """A MAP."""

    def __init__(self, pairs):
        super().__init__(sorted(dict(pairs).items()))


def listed(value):
    """A value of the engine, whose ARRAYs are lists, as one of the reference."""
    if isinstance(value, dict):
        return Named((key, listed(each)) for key, each in value.items())
    return Array(map(listed, value)) if isinstance(value, (list, tuple)) else value


FAILED = object()
"""What ``attempt`` gives in the place of a value."""


def attempt(function, *arguments):
    """The function's value, or FAILED."""
    try:
        return function(*arguments)
    except NoValueError:
        return FAILED


def fits(number, type_name="BIGINT"):
    """Whether a whole number is one of INT or BIGINT."""
    return -(2 ** BITS[type_name]) <= number < 2 ** BITS[type_name]


def whole(number):
    """A BIGINT result."""
    if isinstance(number, int) and not fits(number):
        raise NoValueError
    if isinstance(number, Decimal) and abs(number) >= 10**38:
        raise NoValueError
    return number


def compare(symbol, left, right):
    """A comparison with three truth values; a string beside a date or timestamp is read as one."""
    if left is None or right is None:
        return None
    if isinstance(left, date) and isinstance(right, str):
        right = type(left).fromisoformat(right)
    if isinstance(right, date) and isinstance(left, str):
        left = type(right).fromisoformat(left)
    left, right = (
        v // timedelta.resolution if isinstance(v, timedelta) else v for v in (left, right)
    )
    return COMPARE[symbol](*alike(left, right))


def logical_not(value):
    """NOT with three truth values."""
    return None if value is None else not value


def all_of(values):
    """AND of any number of truth values: false wins, then failure, then unknown."""
    return decided(values, False)


def any_of(values):
    """OR of any number of truth values: true wins, then failure, then unknown."""
    return decided(values, True)


def decided(values, winner):
    """``winner`` if it is there, else failure or unknown if those are, else the other."""
    values = list(values)
    if winner in values:
        return winner
    if FAILED in values:
        raise NoValueError
    return None if None in values else not winner


def arithmetic(symbol, left, right):
    """+ - * / % and ||; NULL if an operand is NULL or a divisor is zero."""
    if left is None or right is None:
        return None
    if isinstance(left, date) or isinstance(right, date):
        return of_times(symbol, left, right)
    if symbol in "/%" and right == 0:
        return None
    if symbol == "%":
        return remainder(left, right)
    left, right = alike(left, right)
    apply = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
        "||": operator.add,
    }[symbol]  # fmt: skip
    with localcontext(Context(prec=200)):
        return whole(apply(left, right))


class Computed(float):
    """A DOUBLE that no constant is: a decimal number beside it becomes one."""


def alike(left, right):
    """Two numbers; beside a decimal one that is written with a point is one too."""
    if {Computed, Decimal} == {type(left), type(right)}:
        return float(left), float(right)
    if isinstance(left, Decimal) and isinstance(right, float):
        return left, Decimal(repr(right))
    if isinstance(left, float) and isinstance(right, Decimal):
        return Decimal(repr(left)), right
    return left, right


def of_times(symbol, left, right):
    """A time moved by a length, or the microseconds between two times; a date is its midnight."""
    left, right = midnight(left), midnight(right)
    if symbol == "+":
        return left + right
    return left - right if isinstance(right, timedelta) else (left - right) // timedelta.resolution


def midnight(moment):
    """A date as a time; anything else as it is."""
    is_day = isinstance(moment, date) and not isinstance(moment, datetime)
    return datetime(moment.year, moment.month, moment.day) if is_day else moment


def remainder(left, right):
    """The remainder with the sign of the dividend."""
    left, right = alike(left, right)
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right)
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def like(text, pattern):
    """LIKE: % stands for any text, _ for one character, a backslash quotes the next."""
    if text is None or pattern is None:
        return None
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    if any(part[0] == "\\" and part[1:] not in ("\\", "%", "_") for part in parts):
        raise NoValueError
    regex = "".join(wild.get(p) or re.escape(p[-1]) for p in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def cast(value, type_name):
    """CAST; numbers lose their fraction towards zero, a string that cannot be read is NULL."""
    if type_name in BITS and value is not None:
        return narrowed(value, type_name)
    try:
        return None if value is None else converted(value, type_name)
    except ValueError:
        return None


def narrowed(value, type_name):
    """CAST to INT or BIGINT: what does not fit is a failure, or NULL if it is a string."""
    try:
        number = int(value)
    except (ValueError, OverflowError):
        number = 2**64
    if fits(number, type_name):
        return number
    if isinstance(value, str):
        return None
    raise NoValueError


def converted(value, type_name):
    """The value as another type."""
    if type_name.startswith("ARRAY<"):
        return as_array(value, type_name)
    if type_name.startswith(("STRUCT<", "MAP<")):
        return as_named(value, type_name)
    if isinstance(value, (Array, Named)):
        return json.dumps(in_json(value), ensure_ascii=False, separators=(",", ":"))
    if type_name == "DOUBLE":
        return float(value)
    if type_name.startswith("DECIMAL"):
        return as_decimal(value, type_name)
    if isinstance(value, Decimal):
        return format(value, "f")
    if type_name == "BINARY":
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, bytes):
        return value.decode()
    if type_name in ("STRING", "VARCHAR"):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if type_name == "BOOLEAN":
        return bool(value)
    if isinstance(value, date):
        day = (value.year, value.month, value.day)
        same = isinstance(value, datetime) == (type_name == "TIMESTAMP")
        return value if same else date(*day) if type_name == "DATE" else datetime(*day)
    return {"TIMESTAMP": datetime, "DATE": date}[type_name].fromisoformat(value)


def in_json(value):
    """A value as JSON has it: what it has no form for is a text."""
    if isinstance(value, Array):
        return [in_json(each) for each in value]
    if isinstance(value, Named):
        return {as_key(key): in_json(each) for key, each in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else value


def as_array(value, type_name):
    """An ARRAY with other elements, or the one of a text of JSON: NULL if an element is none."""
    element = type_name.removeprefix("ARRAY<").removesuffix(">")
    if isinstance(value, Array):
        return Array(None if each is None else cast(each, element) for each in value)
    found = json.loads(value)
    if not isinstance(found, list):
        return None
    return Array(of_json(each, element) for each in found)


def of_json(value, type_name):
    """A value of JSON as one of a type; a ValueError if it is none."""
    fitting = {"STRING": str, "BOOLEAN": bool, "INT": int, "BIGINT": int, "DOUBLE": (int, float)}
    is_truth = type_name == "BOOLEAN"
    if value is None:
        return None
    if not isinstance(value, fitting[type_name]) or isinstance(value, bool) != is_truth:
        raise ValueError(value)
    if type_name in BITS and not fits(value, type_name):
        raise ValueError(value)
    return cast(value, type_name)


def as_key(key):
    """A key of a MAP as JSON has it."""
    return key if isinstance(key, str) else json.dumps(in_json(key))


def as_named(value, type_name):
    """A STRUCT or MAP with other values, or the one of a text of JSON."""
    kind, _, inner = type_name[:-1].partition("<")
    parts = inner.split(", ")
    given = value if isinstance(value, Named) else json.loads(value)
    made = cast if isinstance(value, Named) else of_json
    if not isinstance(given, Mapping):
        return None
    if kind == "MAP":
        return Map((key, made(each, parts[1])) for key, each in given.items())
    fields = [part.split(" ") for part in parts]
    by_name = {key.lower(): each for key, each in given.items()}
    values = given.values() if isinstance(value, Named) else [by_name.get(n) for n, _ in fields]
    pairs = zip(fields, values, strict=True)
    return Struct((name, made(each, of)) for (name, of), each in pairs)


def map_of(*parts):
    """MAP[k, v, …]"""
    return None if None in parts[::2] else Map(zip(parts[::2], parts[1::2], strict=True))


def field(value, name):
    """The field of a STRUCT, in any case of its name."""
    return next(each for key, each in value.items() if key.lower() == name.lower())


def element(array, place):
    """The element at a place, counted from one, or the value of a key."""
    if isinstance(array, Named):
        return array.get(place)
    return array[place - 1] if 1 <= place <= len(array) else None


def array_contains(array, value):
    """Whether an element equals a value, with three truth values."""
    return any_of(compare("=", each, value) for each in array)


def as_decimal(value, type_name):
    """A number with so many digits; one that has more fails, an unreadable string is NULL."""
    try:
        made = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        return None
    if type_name == "DECIMAL":
        return made
    precision, scale = map(int, re.findall(r"\d+", type_name))
    made = made.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=200))
    if abs(int(made.scaleb(scale, Context(prec=200)))) >= 10**precision:
        if isinstance(value, str):
            return None
        raise NoValueError
    return made


def half_up(value, digits=0):
    """ROUND: halves go away from zero."""
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    rounded = number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return whole(type(value)(rounded))


def to_whole(function):
    """ceil or floor: a BIGINT, zero for NaN; of a decimal number a decimal one."""

    def apply(number):
        if isinstance(number, float) and math.isnan(number):
            return 0
        if isinstance(number, float) and math.isinf(number):
            raise NoValueError
        found = function(number)
        return whole(Decimal(found) if isinstance(number, Decimal) else found)

    return apply


def sign(number):
    """-1, 0 or 1."""
    if number != number:
        raise NoValueError
    return float((number > 0) - (number < 0))


def split_part(text, separator, number):
    """The parts between separators are counted from one, or from the end."""
    if number == 0:
        raise NoValueError
    parts = text.split(separator) if separator else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def substring(text, start, length=None):
    """SUBSTRING counts from one, a negative start from the end."""
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


def as_bytes(value):
    """A text's UTF-8."""
    return value.encode() if isinstance(value, str) else value


def unhex(text):
    """The bytes of hexadecimal digits, of which the first may stand for a byte alone."""
    return (
        bytes.fromhex("0" * (len(text) % 2) + text) if re.fullmatch("[0-9A-Fa-f]*", text) else None
    )


def unbase64(text):
    """The bytes of a text in base64."""
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return found if base64.b64encode(found)[:-3] == text.encode()[:-3] else None


def digest(name):
    """A hash of bytes, in hexadecimal digits."""
    return lambda value: getattr(hashlib, name)(as_bytes(value)).hexdigest()


SMALL = {"microsecond": 0, "second": 0, "minute": 0, "hour": 0}
TRUNCATED = {
    "minute": {"microsecond": 0, "second": 0},
    "hour": {"microsecond": 0, "second": 0, "minute": 0},
    "second": {"microsecond": 0},
    "day": SMALL,
    "month": SMALL | {"day": 1},
    "year": SMALL | {"day": 1, "month": 1},
}

WIDTHS = {"microsecond": 1, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}


def truncated(unit, moment):
    """The beginning of a unit, or of a width such as '10 seconds' counted from 1970."""
    if unit == "week":
        return truncated("day", moment) - timedelta(days=moment.weekday())
    if unit in TRUNCATED:
        return moment.replace(**TRUNCATED[unit])
    number, word = unit.split()
    width = timedelta(microseconds=int(number) * WIDTHS[word.removesuffix("s")])
    begin = datetime(1970, 1, 1)
    return begin + (midnight(moment) - begin) // width * width


def shown_in(moment, zone):
    """What the clocks of a zone show at an instant."""
    aware = moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    return aware.replace(tzinfo=None, fold=0)


def first_in(local, zone):
    """The first instant at which the clocks of a zone show a time, or skip it."""
    offsets = {local.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1)}
    found = [local - offset for offset in offsets if shown_in(local - offset, zone) == local]
    if found:
        return min(found)
    low, high = local - max(offsets), local - min(offsets)
    while high - low > timedelta.resolution:
        middle = low + (high - low) // 2
        low, high = (low, middle) if shown_in(middle, zone) >= local else (middle, high)
    return high


def truncated_in(unit, moment, zone):
    """The beginning of a unit by the calendar of a zone."""
    local = shown_in(moment, zone)
    begin = truncated(unit, local)
    if unit in ("day", "week", "month", "year"):
        return first_in(begin, zone)
    return moment - (local - begin)


# Functions that are NULL if an argument is NULL.
def date_format(moment, pattern):
    """A time as text; the patterns of tests quote nothing."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    fields = {
        "yyyy": f"{moment.year:04}", "yy": f"{moment.year % 100:02}", "MM": moment.strftime("%m"),
        "M": str(moment.month), "MMM": moment.strftime("%b"), "MMMM": moment.strftime("%B"),
        "d": str(moment.day), "dd": f"{moment.day:02}", "E": moment.strftime("%a"),
        "EEEE": moment.strftime("%A"), "H": str(moment.hour), "HH": f"{moment.hour:02}",
        "h": str(moment.hour % 12 or 12), "hh": f"{moment.hour % 12 or 12:02}",
        "a": "AM" if moment.hour < 12 else "PM", "m": str(moment.minute),
        "mm": f"{moment.minute:02}", "s": str(moment.second), "ss": f"{moment.second:02}",
    }  # fmt: skip
    fraction = f"{moment.microsecond:06}"
    return re.sub(r"([A-Za-z])\1*", lambda m: fields.get(m[0]) or fraction[: len(m[0])], pattern)


def as_re2(pattern):
    """A regular expression as RE2 takes it: classes are of ASCII, and $ is the end of the text."""
    return re.compile(re.sub(r"\$$", r"\\Z", pattern), re.ASCII)


def regexp_extract(text, pattern, group=None):
    """A group of the first match: the first, if none is named, or all of it if there are none."""
    found = as_re2(pattern).search(text)
    if found is None:
        return None
    return found[min(1, len(found.groups())) if group is None else group] or ""


def json_value(text, path):
    """What a path of keys and places leads to in JSON, as text."""
    try:
        value = json.loads(text, parse_float=str, parse_int=str)
        for key, place in re.findall(r"\.(\w+)|\[(\d+)\]", path):
            if not isinstance(value, dict if key else list):
                return None
            value = value[key] if key else value[int(place)]
    except (ValueError, LookupError, TypeError):
        return None
    return (
        str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else None
    )


STRICT = {
    "abs": lambda x: whole(abs(x)),
    "ceil": to_whole(math.ceil),
    "floor": to_whole(math.floor),
    "round": half_up,
    "sign": sign,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else None,
    "exp": math.exp,
    "ln": lambda x: math.log(x) if x > 0 else None,
    "power": lambda x, y: float(x) ** y,
    "mod": lambda x, y: arithmetic("%", x, y),
    "div": lambda x, y: None if y == 0 else whole((x - remainder(x, y)) // y),
    "sin": math.sin,
    "atan2": math.atan2,
    "json_value": json_value,
    "[]": element,
    "cardinality": len,
    "field": field,
    "map_keys": lambda value: Array(value.keys()),
    "map_values": lambda value: Array(value.values()),
    "array_contains": array_contains,
    "crc32": lambda value: zlib.crc32(as_bytes(value)),
    **{name: digest(name) for name in ("md5", "sha1", "sha256", "sha512")},
    "octet_length": lambda value: len(as_bytes(value)),
    "hex": lambda value: as_bytes(value).hex().upper(),
    "unhex": unhex,
    "base64": lambda value: base64.b64encode(as_bytes(value)).decode(),
    "unbase64": unbase64,
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "trim": lambda text: text.strip(" "),
    "reverse": lambda text: text[::-1],
    "concat": lambda *texts: functools.reduce(operator.add, texts),
    "replace": str.replace,
    "ltrim": lambda text: text.lstrip(" "),
    "rtrim": lambda text: text.rstrip(" "),
    "left": lambda text, length: text[: max(length, 0)],
    "right": lambda text, length: text[-length:] if length > 0 else "",
    "strpos": lambda text, part: text.find(part) + 1,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": operator.contains,
    "substring": substring,
    "substr": substring,
    "split_part": split_part,
    "year": lambda d: d.year,
    "month": lambda d: d.month,
    "day": lambda d: d.day,
    "hour": lambda d: d.hour,
    "minute": lambda d: d.minute,
    "second": lambda d: d.second,
    "dayofweek": lambda d: d.isoweekday() % 7 + 1,
    "date_add": lambda d, days: d + timedelta(days=days),
    "date_sub": lambda d, days: d - timedelta(days=days),
    "datediff": lambda d, other: (d - other).days,
    "date_trunc": truncated,
    "shown_in": shown_in,
    "first_in": first_in,
    "truncated_in": truncated_in,
    "date_format": date_format,
    "regexp_like": lambda text, pattern: as_re2(pattern).search(text) is not None,
    "regexp_extract": regexp_extract,
    "regexp_replace": lambda text, pattern, by: as_re2(pattern).sub(by, text),
}


def present(values):
    """The values that are not NULL."""
    return [v for v in values if v is not None]


# Functions that look at NULLs themselves.
LENIENT = {
    "array": lambda *values: Array(values),
    "map": map_of,
    "struct": lambda *parts: Struct(zip(parts[::2], parts[1::2], strict=True)),
    "nullif": lambda x, y: None if compare("=", x, y) else x,
    "greatest": lambda *values: max(present(values), default=None),
    "least": lambda *values: min(present(values), default=None),
}


def call(name, arguments):
    """A scalar function applied to values."""
    if name in LENIENT:
        return LENIENT[name](*arguments)
    return None if None in arguments else STRICT[name](*arguments)


def aggregate(name, values, parameter=None):
    """An aggregate of the values that are not NULL; sums are exact before they are rounded once."""
    values = present(values)
    if name == "count":
        return len(values)
    if name == "approx_count_distinct":
        return len(set(values))
    if not values:
        return None
    if name in ("min", "max"):
        return min(values) if name == "min" else max(values)
    if name == "percentile":
        return percentile(sorted(values), parameter)
    total = sum(map(Fraction, values))
    if name in ("sum", "avg") and all(isinstance(v, Decimal) for v in values):
        return of_decimals(name, values)
    if name == "sum":
        if any(isinstance(v, float) for v in values):
            return float(total)
        if not fits(total):
            raise AggregateOverflowError
        return int(total)
    if name == "avg":
        return float(total / len(values))
    return deviation(name, values, total / len(values))


def of_decimals(name, values):
    """The sum, or the mean with four digits more behind the point, rounded half away from zero."""
    exact = Context(prec=200, rounding=ROUND_HALF_UP)
    total = functools.reduce(exact.add, values)
    if name == "sum":
        return total
    last = Decimal(1).scaleb(min(v.as_tuple().exponent for v in values) - 4)
    return exact.quantize(exact.divide(total, Decimal(len(values))), last)


OWN_AGGREGATES = {}
"""What aggregates of the user mean, that a test has: functions of the rows of a group in order."""


def aggregate_in_order(name, rows, between):
    """An aggregate of rows of arguments that are in order."""
    if not rows:
        return None
    if name in ("first", "last"):
        return rows[0 if name == "first" else -1][0]
    if name == "string_agg":
        return between.join(text for (text,) in rows)
    if name == "array_agg":
        return Array(value for (value,) in rows)
    if name in OWN_AGGREGATES:
        return OWN_AGGREGATES[name](rows)
    best = (max if name == "max_by" else min)(by for _, by in rows)
    return next(x for x, by in rows if by == best)


def deviation(name, values, mean):
    """The sample variance or standard deviation."""
    if len(values) < 2:
        return None
    variance = float(sum((Fraction(v) - mean) ** 2 for v in values) / (len(values) - 1))
    return Computed(math.sqrt(variance) if name == "stddev" else variance)


def percentile(ordered, fraction):
    """Interpolates linearly at rank fraction·(n-1)."""
    rank = Fraction(fraction) * (len(ordered) - 1)
    low = math.floor(rank)
    high = math.ceil(rank)
    step = Fraction(ordered[high]) - Fraction(ordered[low])
    return Computed(Fraction(ordered[low]) + (rank - low) * step)


def order_key(row):
    """Orders rows column by column: NULL first, false before true, strings by code point."""
    return tuple((value is not None, 0 if value is None else value) for value in row)
