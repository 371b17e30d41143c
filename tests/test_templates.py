"""What is known of a plan without rewriting it is what rewriting it gives."""

from __future__ import annotations

import random
import re

import pytest

from millpond import Engine
from millpond.cql.check.statements import check_statement
from millpond.errors import MillpondError, Position
from millpond.planning.optimise import optimise
from millpond.sharing.templates import MOST_TEMPLATES, Templates, are_alike, shaped
from tests.generator import random_case
from tests.siblings import CONSTANT, declared, plain_query, with_other_constants

STREAM = "CREATE STREAM S (ts BIGINT, k INT, v DOUBLE, s STRING) TIMESTAMP BY ts;"
NUMBERS = (0, 1, 2, 3, 5, 77, 1_000_003, 2**31, 2**62, -4)

TEXTS = (
    "SELECT ts FROM S WHERE k = 5",
    "SELECT ts FROM S WHERE k = 5 AND k = 7 AND v > 2.5",
    "SELECT ts FROM S WHERE k > 5 OR k < 7 AND NOT k = 5",
    "SELECT ts FROM S WHERE k IN (5, 7, 9) AND v BETWEEN 0.25 AND 1.5",
    "SELECT ts FROM S WHERE s = 'a' AND s <> 'b'",
    "SELECT k = 5 AS is_five FROM S WHERE k = 5",
    "SELECT ts FROM (SELECT ts, k = 5 AS five, 7 AS seven FROM S) WHERE five AND seven = 9",
    "SELECT ts FROM S WHERE k + 5 > 9 AND k / 7 = 3",
    "SELECT ts FROM S WHERE 5 = 7 OR k = 9",
    "SELECT ts FROM S WHERE coalesce(k = 5, FALSE)",
    "SELECT k, count(*) AS n FROM S [RANGE 5] WHERE k = 7 GROUP BY k HAVING count(*) > 9",
    "SELECT count(*) AS n FROM S [RANGE 5] WHERE k > 7",
    "SELECT a.k FROM S [RANGE 5] a, S [RANGE 5] b WHERE a.k = 7 AND b.k = 7 AND a.v = b.v",
    "SELECT a.k FROM S [RANGE 5] a LEFT JOIN S [RANGE 5] b ON a.k = b.k AND b.k > 7 AND a.k > 9",
    "SELECT DISTINCT k FROM S [ROWS 5 WHERE k = 7] WHERE k > 9",
    "SELECT k FROM S [RANGE 5] WHERE k = 7 EXCEPT SELECT k FROM S [RANGE 5] WHERE k = 9",
    "SELECT k FROM S [RANGE 5] WHERE k = 7 UNION ALL SELECT k FROM S [RANGE 5] WHERE k = 7",
    "SELECT ts FROM S WHERE k IN (SELECT k FROM S [RANGE 5] WHERE k = 7)",
    "SELECT CASE WHEN k = 5 THEN 7 ELSE 9 END AS c FROM S WHERE k > 5",
)


def compare(templates, catalog, texts):
    """Statements that are known, and those that are not."""
    known = 0
    for text in texts:
        try:
            entry = check_statement(f"CREATE QUERY q AS {text}", Position(1, 1), catalog)
            plan = entry.action.entry.plan
            expected = shaped(optimise(plan))
        except MillpondError:
            continue
        found = templates.shaped(plan)
        assert found is None or are_alike(found, expected), text
        known += found is not None
    return known


def with_numbers(rng, text):
    """The text with any numbers in place of its whole ones."""
    return re.sub(r"(?<![\w.'])\d+(?![\w.'])", lambda found: str(rng.choice(NUMBERS)), text)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_with_other_constants_has_the_shape_that_rewriting_gives(text):
    rng, templates = random.Random(text), Templates()
    with Engine() as engine:
        engine.execute(STREAM)
        others = (rng.choice([with_numbers, with_other_constants])(rng, text) for _ in range(60))
        compare(templates, engine.catalog, [text, *others])


@pytest.mark.parametrize("seed", range(16))
def test_random_queries_with_other_constants_have_the_shapes_that_rewriting_gives(seed):
    rng, templates = random.Random(seed), Templates()
    case = random_case(rng, 3)
    catalog = declared(case)
    for text in [*case.queries.values(), *(plain_query(rng, case) for _ in range(4))]:
        compare(templates, catalog, [text, *(with_other_constants(rng, text) for _ in range(12))])


def test_plain_alerts_are_known_from_the_second_on():
    with Engine() as engine:
        engine.execute(STREAM)
        texts = [f"SELECT ts FROM S WHERE k = {n} AND v > {n}.5" for n in range(2, 22)]
        assert compare(Templates(), engine.catalog, texts) == 19


def test_what_comes_out_does_not_depend_on_templates(monkeypatch):
    rng = random.Random(7)
    texts = [text for text in TEXTS[:16] for _ in range(4)]
    texts = [
        CONSTANT.sub(lambda found: found[0].replace("5", str(rng.randint(2, 9))), t) for t in texts
    ]
    script = ";".join(f"CREATE QUERY q{n} AS {text}" for n, text in enumerate(texts))

    def answers():
        with Engine() as engine:
            engine.execute(STREAM)
            engine.execute(script)
            for ts in range(6):
                rows = [(ts, n % 11, n / 4, "ab"[n % 2]) for n in range(ts, ts + 9)]
                engine.push("S", rows)
                engine.run_until_idle()
            engine.finish()
            found = [engine.queries.groups._of.get(f"q{n}") for n in range(len(texts))]
            members = [each and (each[0].name, each[1]) for each in found]
            return members, [engine.results(f"q{n}").to_pylist() for n in range(len(texts))]

    quick = answers()
    monkeypatch.setattr(Templates, "shaped", lambda self, plan: None)
    assert answers() == quick


def test_not_all_skeletons_are_kept():
    templates = Templates()
    with Engine() as engine:
        engine.execute(STREAM)
        texts = [f"SELECT ts + {n} AS x FROM S WHERE k = 7" for n in range(MOST_TEMPLATES + 50)]
        compare(templates, engine.catalog, texts)
    assert len(templates._known) == MOST_TEMPLATES == len(templates._seen_once)
