"""Queries like those of a case but for their constants: sets of equal shape, to be run as one."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from millpond.catalog import Catalog
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_statement
from millpond.cql.text.split import split_statements
from millpond.errors import MillpondError, Position
from tests import reference
from tests.cases import Alter, Drop, Push, Register, Run, literal
from tests.generator import MOST_WORK, random_case
from tests.history import ticks
from tests.query_generator import ARRAYS, BINARIES, DATES, MAP, STRINGS, STRUCT, TIMESTAMPS
from tests.reference_values import AggregateOverflowError, Map, NoValueError, Struct

COMPARISONS = ("=", "=", "<", ">=", ">", "<>")
CONSTANT = re.compile(r"'[^']*'|(?<![\w.'])\d+(?:\.\d+)?(?![\w.'])")
MEMBERS = re.compile(
    r"(\bNOT IN|\bIN|<>|(?<![<>])=) (\((?!SELECT)[^()]*\)|" + CONSTANT.pattern + ")"
)
"""A list of constants, or one that is compared with."""
PATTERNS = ("%", "a%", "_b", "%b%", "", "a", "\\%")
WINDOWS = ("", "[UNBOUNDED]", "[NOW]", "[RANGE 4]", "[RANGE 1]", "[RANGE 9 SLIDE 2]", "[ROWS 3]")
WINDOW = re.compile(r"\[[^\]]*\]")
LENGTH = re.compile(r"\b(RANGE|ROWS) \d+")
ALTERABLE = re.compile(
    r"(?P<name>\w+) \[(?:PARTITION BY [^\]]*? )?"
    r"(?P<kind>RANGE|ROWS) (?P<length>\d+)(?=\]| SLIDE| WHERE)"
)
"""A window whose length can be another one, with what stands before it in FROM."""

SAMPLED = re.compile(r"\bFROM S\d s\b( \[[^\]]*\])?")
RATES = (0.001, 20, 40, 40.5, 60, 100)


def sharing_case(seed, most=50, plain=0.5):
    """A case with up to so many queries of a few shapes, registered and dropped at any time.

    ``plain``: how many cases are of plain queries only.
    """
    rng = random.Random(seed)
    case = random_case(rng, rng.randint(1, 4), title=f"sharing, seed {seed}")
    if rng.random() < plain:
        case = with_plain_queries(rng, case)
    case = with_siblings(rng, case, min(most, rng.choice([1, 3, 6, 6, 12, most])))
    return with_alterations(rng, case)


def with_plain_queries(rng, case):
    """The case with alerts instead of its queries: what most people register by the thousand."""
    texts = {name: telling_query(rng, case) for name in case.queries}
    schedule = tuple(action for action in case.schedule if not hasattr(action, "query"))
    return replace(case, queries=texts, schedule=schedule, skipping=frozenset())


def telling_query(rng, case):
    """A plain query that the reference answers in time."""
    for _ in range(8):
        text = plain_query(rng, case)
        try:
            reference.evaluate(text, *case.reference_arguments(), most_work=MOST_WORK)
        except reference.TooMuchWorkError:
            continue
        return text
    return f"SELECT s.{case.streams[0].schema[0][0]} FROM {case.streams[0].name} s"


def first_in_time(case, draw):
    """The first of a few draws that is a query, and one that the reference answers in time."""
    catalog = declared(case)
    for _ in range(6):
        text = draw()
        try:
            check_statement(f"CREATE QUERY q AS {text}", Position(1, 1), catalog)
            reference.evaluate(text, *case.reference_arguments(), most_work=MOST_WORK)
        except (MillpondError, reference.TooMuchWorkError, AggregateOverflowError):
            continue
        return text
    return None


def plain_query(rng, case):
    """A selection, a count by key, or a join, each with constants."""
    stream = rng.choice(case.streams)
    name, type_ = rng.choice(stream.schema)
    where = condition(rng, name, type_)
    key, key_type = rng.choice(stream.schema)
    window = plain_window(rng, key, condition(rng, name, type_))
    others = [
        (entry, column)
        for entry in case.streams + case.relations
        for column, other_type in entry.schema
        if other_type == key_type
    ]
    other, column = rng.choice(others)
    inside = rng.choice(["[NOW]", "[RANGE 5]"]) if other in case.streams else ""
    return rng.choice(
        [
            f"SELECT s.{key}, s.{name} FROM {stream.name} s {window} WHERE {where}",
            (
                f"SELECT s.{key}, count(*) AS n FROM {stream.name} s {window} WHERE {where} "
                f"GROUP BY s.{key} HAVING count(*) > {rng.randint(0, 2)}"
            ),
            f"SELECT DISTINCT s.{key} FROM {stream.name} s {window} WHERE {where}",
            f"SELECT count(*) AS n FROM {stream.name} s {window} WHERE {where}",
            (
                f"SELECT s.{name}, o.{column} "
                f"FROM {stream.name} s [RANGE 4], {other.name} o {inside} "
                f"WHERE s.{key} = o.{column} AND {where}"
            ),
        ]
    )


def plain_window(rng, key, where):
    """A window, often a Rows window over what a constant selects."""
    if rng.random() < 0.6:
        return rng.choice(WINDOWS)
    by, slide = rng.choice(["", f"PARTITION BY {key} "]), rng.choice(["", "", " SLIDE 2"])
    return f"[{by}ROWS {rng.randint(1, 4)}{slide} WHERE {where.replace('s.', '')}]"


def condition(rng, name, type_):
    """A column compared with constants."""
    if rng.random() < 0.3:
        members = (constant_of(rng, type_) for _ in range(rng.randint(1, 3)))
        return f"s.{name} {rng.choice(['IN', 'NOT IN'])} ({', '.join(members)})"
    if type_ == "STRING" and rng.random() < 0.4:
        return f"s.{name} {rng.choice(['LIKE', 'NOT LIKE'])} '{rng.choice(PATTERNS)}'"
    return f"s.{name} {rng.choice(COMPARISONS)} {constant_of(rng, type_)}"


def constant_of(rng, type_):
    """A constant to compare with."""
    domains = {"STRING": STRINGS, "BOOLEAN": (True, False), "DATE": DATES, "TIMESTAMP": TIMESTAMPS}
    domains["BINARY"] = BINARIES
    domains |= dict.fromkeys(ARRAYS, ((1,), (1, 2), (2, None)))
    domains[STRUCT] = [Struct([("n", n), ("w", w)]) for n, w in ((1, "a"), (2, None))]
    domains[MAP] = [Map([("a", 1)]), Map([("a", 1), ("b", 2)])]
    if type_ in domains:
        return literal(rng.choice(domains[type_]))
    return other_constant(rng, "1.5" if type_ == "DOUBLE" else "1")


def with_samples(rng, case):
    """The case with a sample of the first stream that a query reads, of any rate; nothing is
    dropped, so that how far a query came does not matter, and all see what comes after them."""
    texts = {
        name: SAMPLED.sub(lambda found: f"{found[0]} SAMPLE({rng.choice(RATES)})", text, count=1)
        for name, text in case.queries.items()
    }
    schedule = [
        replace(action, start="") if isinstance(action, Register) else action
        for action in case.schedule
        if not isinstance(action, Drop)
    ]
    return replace(case, queries=texts, schedule=tuple(schedule))


def with_siblings(rng, case, count):
    """The case with some queries more, each like one of its own but for constants."""
    catalog = declared(case)
    keepers = keeping(case) if rng.random() < 0.4 else {}
    texts, schedule = dict(keepers), list(case.schedule)
    chosen = [name for name in case.queries if name not in case.skipping]
    for number in range(count if chosen else 0):
        text = sibling(rng, case, catalog, case.queries[rng.choice(chosen)])
        if text is None:
            continue
        name, first = f"x{number}", 0
        texts[name] = text
        if rng.random() < 0.5:
            first = rng.randint(0, len(schedule))
            schedule.insert(first, Register(name, drawn_start(rng, case, keepers)))
        if rng.random() < 0.3:
            schedule.insert(rng.randint(first + 1, len(schedule) + 1), Drop(name))
    return replace(case, queries=case.queries | texts, schedule=tuple(schedule))


def with_alterations(rng, case, share=0.25):
    """The case with other lengths for windows of some of its queries, at any time."""
    texts, schedule = dict(case.queries), list(case.schedule)
    for name in case.queries:
        while rng.random() < share:
            change = drawn_change(rng, case, texts[name], name in case.skipping)
            if change is None:
                break
            first = place_of(schedule, Register, name, -1) + 1
            first = max(first, 1 + place_of(schedule, Alter, name, -1))
            last = place_of(schedule, Drop, name, len(schedule))
            if last < len(schedule):
                schedule.insert(last, Run())  # so that what it begins with is put out
            texts[name] = change[1]
            schedule.insert(rng.randint(first, max(first, last)), Alter(name, *change))
    return case.with_schedule(schedule)


def place_of(schedule, kind, query, otherwise):
    """Where in a schedule something of this kind happens to a query last."""
    places = [
        place
        for place, action in enumerate(schedule)
        if isinstance(action, kind) and action.query == query
    ]
    return places[-1] if places else otherwise


def drawn_change(rng, case, text, skips):
    """(what follows WINDOW OF, the text with it); None if no draw makes sense."""
    catalog, found = declared(case), list(ALTERABLE.finditer(text))
    if not found:
        return None
    window = rng.choice(found)
    length = str(rng.randint(0 if window["kind"] == "RANGE" else 1, 6))
    other = text[: window.start("length")] + length + text[window.end("length") :]
    change = f"{window['name']} = {window['kind']} {length}"
    try:
        create = check_statement(f"CREATE QUERY altered AS {text}", Position(1, 1), catalog)
        apply(create.action, catalog)
        check_statement(f"ALTER QUERY altered SET WINDOW OF {change}", Position(1, 1), catalog)
        policy = "skip" if skips else "stop"
        reference.evaluate(other, *case.reference_arguments(), policy, MOST_WORK)
    except (
        MillpondError,
        reference.TooMuchWorkError,
        AggregateOverflowError,
        NoValueError,
        ValueError,
    ):
        return None
    return change, other


def keeping(case):
    """Queries whose windows hold all that has come, so that others can see it later."""
    texts = (f"SELECT count(*) AS n FROM {each.name} [RANGE 1000000000]" for each in case.streams)
    return {f"keep{number}": text for number, text in enumerate(texts)}


def drawn_start(rng, case, keepers):
    """From when on a query is to see its streams; most often from its registration on."""
    times = [
        ticks(row[0], case.tick_microseconds)
        for action in case.schedule
        if isinstance(action, Push) and action.target in {each.name for each in case.streams}
        for row in action.rows
    ]
    if rng.random() < (0.3 if keepers else 0.9):
        return ""
    return (
        str(rng.choice(times) + rng.randint(0, 1)) if times and rng.random() < 0.5 else "BEGINNING"
    )


def declared(case):
    """What the queries of a case may name."""
    catalog = Catalog()
    for text, position in split_statements(case.ddl()):
        apply(check_statement(text, position, catalog).action, catalog)
    return catalog


def sibling(rng, case, catalog, text):
    """The same query with other constants; None if no draw makes sense."""
    for _ in range(4):
        other = with_other_constants(rng, text)
        try:
            check_statement(f"CREATE QUERY sibling AS {other}", Position(1, 1), catalog)
            reference.evaluate(other, *case.reference_arguments(), most_work=MOST_WORK)
        except (MillpondError, reference.TooMuchWorkError, AggregateOverflowError, ValueError):
            continue
        return other
    return None


def with_other_constants(rng, text):
    """The text with most of its constants replaced, often those of windows too."""
    windows = rng.random() < 0.4

    def changed(found):
        inside = any(w.start() < found.start() < w.end() for w in WINDOW.finditer(text))
        if rng.random() < 0.3 or (inside and not windows):
            return found[0]
        return other_constant(rng, found[0])

    text = MEMBERS.sub(lambda found: other_members(rng, found), text)
    if rng.random() < 0.5:
        text = LENGTH.sub(lambda found: f"{found[1]} {rng.randint(1, 6)}", text)
    return CONSTANT.sub(changed, text)


def other_members(rng, found):
    """A list of constants of another length, of the same types; one may be a comparison."""
    told = found[2].strip("()").split(", ")
    if rng.random() < 0.5:
        return found[0]
    members = [rng.choice(told) for _ in range(rng.randint(1, 4))]
    members += ["NULL"] if rng.random() < 0.2 else []
    word = "NOT IN" if found[1] in ("NOT IN", "<>") else "IN"
    return f"{word} ({', '.join(members)})"


def other_constant(rng, constant):
    """A constant of the same type."""
    if constant.startswith("'"):
        return f"'{rng.choice(STRINGS)}'" if constant[1:-1] in STRINGS else constant
    if "." in constant:
        return str(rng.choice([0.0, 0.5, 1.0, 1.5, 2.0]))
    return str(rng.choice([0, 1, 2, 3, 4]))
