"""Buckets are Spark's partitions: the driver and the executors find the same rows in them."""

from __future__ import annotations

import math
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from millpond.kernels import hashing
from millpond.kernels.hashing import LONG_BYTES, buckets, murmur3
from millpond.spark.frames import dividing
from tests.drawn_examples import examples

DOUBLES = st.floats() | st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["", "a", "ab", "abc", "abcd", "ÿ", "日本語", "x" * 256, "x" * 257, "Ä" * 129, "x" * 9999]
)
VALUES = {
    "b": (pa.bool_(), st.booleans()),
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "d": (pa.float64(), DOUBLES),
    "s": (pa.string(), TEXTS),
    "t": (pa.date32(), st.dates(date(1600, 1, 1), date(2400, 1, 1))),
    "u": (pa.timestamp("us"), st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1))),
    "v": (pa.null(), st.none()),
}
SCHEMA = pa.schema([(name, type_) for name, (type_, _) in VALUES.items()])
ROWS = st.lists(
    st.fixed_dictionaries({name: values | st.none() for name, (_, values) in VALUES.items()}),
    min_size=1,
    max_size=60,
)
KEYS = [*([name] for name in VALUES), list(VALUES), ["s", "d"], ["l", "s", "i"]]


@examples(15, HealthCheck.function_scoped_fixture)
@given(rows=ROWS, count=st.integers(1, 300))
def test_buckets_are_the_partitions_of_spark(spark, rows, count):
    table = pa.Table.from_pylist(rows, SCHEMA)
    hashes = [F.pmod(F.hash(*dividing(keys, SCHEMA)), F.lit(count)) for keys in KEYS]
    expected = spark.createDataFrame(table).select(*hashes).toArrow()
    for keys, column in zip(KEYS, expected.columns, strict=True):
        assert buckets([table[name] for name in keys], count).tolist() == column.to_pylist()


def test_a_shuffle_puts_rows_where_the_driver_looks_for_them(spark):
    count, size = 7, 400
    table = pa.table(
        {
            "n": range(size),
            "s": [None if i % 9 == 0 else "k" * (i % 23 * 20) + str(i) for i in range(size)],
            "d": [None if i % 11 == 0 else i / 3 for i in range(size)],
        }
    )
    shuffled = spark.createDataFrame(table).repartition(count, *dividing(["s", "d"], table.schema))
    found = shuffled.select("n", F.spark_partition_id().alias("p")).toArrow()
    placed = dict(zip(found["n"].to_pylist(), found["p"].to_pylist(), strict=True))
    expected = buckets([table["s"], table["d"]], count).tolist()
    assert [placed[n] for n in range(size)] == expected


@given(st.lists(TEXTS | st.none(), max_size=80), st.integers(0, 80), st.integers(0, 80))
def test_slices_and_chunks_hash_like_the_whole(values, first, second):
    whole = pa.array(values, pa.string())
    expected = murmur3([pa.chunked_array([whole])])
    parts = [whole.slice(0, first), whole.slice(first)]
    assert np.array_equal(murmur3([pa.chunked_array(parts)]), expected)
    sliced = pa.chunked_array([whole.slice(second)], pa.string())
    assert np.array_equal(murmur3([sliced]), expected[second:])


@pytest.mark.parametrize("copies", [1, 100])
def test_long_strings_are_hashed_alike_alone_and_among_many(copies):
    text = "Ääß" * 30_000
    hashes = murmur3([pa.chunked_array([[text] * copies])])
    assert set(hashes.tolist()) == {int(murmur3([pa.chunked_array([[text]])])[0])}


def test_the_words_of_a_long_key_are_not_hashed_one_by_one_in_python(monkeypatch):
    words = []
    one_by_one = hashing._mixed_one_by_one

    def counted(value, some):
        words.append(len(some))
        return one_by_one(value, some)

    monkeypatch.setattr(hashing, "_mixed_one_by_one", counted)
    murmur3([pa.chunked_array([["x" * 2_000_000, "y" * LONG_BYTES, None, "short"]])])
    assert max(words) <= LONG_BYTES // 4


def test_texts_that_differ_at_their_ends_only_have_other_hashes():
    texts = ["x" * 5_000 + str(n) for n in range(1_000)]
    assert len(set(murmur3([pa.chunked_array([texts])]).tolist())) > 990


def test_no_rows_have_no_buckets():
    for type_, _ in VALUES.values():
        assert buckets([pa.chunked_array([], type_)], 5).tolist() == []
