"""Events as NEXMark's generator draws them: of 50, one person, three auctions and 46 bids.

Half the bids go to an auction that is hot for a while, half of them come by one of four channels,
and auctions are mostly of new sellers. Several events have the same time, prices repeat, some bids
come when their auction has expired, and no bid is for an auction that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

Table = pa.Table
Numbers = np.ndarray

CYCLE, PERSONS, AUCTIONS = 50, 1, 3
FIRST = 1_436_918_400_000_000
"""The time of the first event, in microseconds."""
HOT, IN_FLIGHT = 100, 100
CITIES = ("Phoenix", "Palo Alto", "Seattle", "Boise", "Portland")
STATES = ("AZ", "CA", "WA", "ID", "OR")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple", *(f"channel-{each}" for each in range(100)))
ADDRESSES = tuple(
    f"https://www.nexmark.com/{name[:3]}/{number % 7}/{number % 11}/item.htm?query=1"
    + ("" if number < 4 else f"&channel_id={number * 1009}")
    for number, name in enumerate(CHANNELS)
)
KEYS = 10_000
"""How many keys the bounded side input has."""


@dataclass(frozen=True)
class Events:
    """So many events, at a rate a second; the same seed gives the same ones."""

    count: int
    per_second: int = 1_000
    seed: int = 1

    def tables(self) -> dict[str, Table]:
        """The tuples of each stream, in order of time."""
        number = np.arange(self.count)
        place = number % CYCLE
        times = FIRST + number * 1_000 // self.per_second * 1_000
        is_person, is_auction = place < PERSONS, (place >= PERSONS) & (place < PERSONS + AUCTIONS)
        is_bid = ~(is_person | is_auction)
        random = np.random.default_rng(self.seed)
        return {
            "person": self._persons(number[is_person], times[is_person], random),
            "auction": self._auctions(number[is_auction], times[is_auction], random),
            "bid": self._bids(number[is_bid], times[is_bid], random),
        }

    @staticmethod
    def _persons(number: Numbers, times: Numbers, random: np.random.Generator) -> Table:
        ids = number // CYCLE
        place = random.integers(0, len(CITIES), len(ids))
        columns = {
            "id": ids,
            "name": [f"person {each}" for each in ids],
            "emailAddress": [f"{each}@example.org" for each in ids],
            "creditCard": [f"{each:016}" for each in ids],
            "city": _chosen(CITIES, place),
            "state": _chosen(STATES, place),
        }
        return pa.table(columns | {"dateTime": _moments(times), "extra": _extra(number)})

    @staticmethod
    def _auctions(number: Numbers, times: Numbers, random: np.random.Generator) -> Table:
        ids = number // CYCLE * AUCTIONS + number % CYCLE - PERSONS
        first = _prices(random, len(ids))
        columns = {
            "id": ids,
            "itemName": [f"item {each % 1_000}" for each in ids],
            "description": [f"as good as new, number {each}" for each in ids],
            "initialBid": first,
            "reserve": first + _prices(random, len(ids)),
            "dateTime": _moments(times),
            "expires": _moments(times + random.integers(1, 4_000, len(ids)) * 1_000),
            "seller": np.maximum(number // CYCLE - random.integers(0, 4, len(ids)), 0),
            "category": random.integers(10, 15, len(ids)),
        }
        return pa.table(columns | {"extra": _extra(number)})

    @staticmethod
    def _bids(number: Numbers, times: Numbers, random: np.random.Generator) -> Table:
        last = number // CYCLE * AUCTIONS + AUCTIONS - 1
        near = np.maximum(last - random.integers(0, IN_FLIGHT, len(last)), 0)
        is_hot = random.random(len(last)) < 0.5
        place = np.where(is_hot, number % 4, random.integers(4, len(CHANNELS), len(last)))
        columns = {
            "auction": np.where(random.random(len(last)) < 0.5, last // HOT * HOT, near),
            "bidder": np.maximum(number // CYCLE - random.integers(0, 50, len(last)), 0),
            "price": _prices(random, len(last)),
            "channel": _chosen(CHANNELS, place),
            "url": _chosen(ADDRESSES, place),
        }
        return pa.table(columns | {"dateTime": _moments(times), "extra": _extra(number)})


def side_input() -> Table:
    """The bounded side input: what is known of each key."""
    return pa.table({"key": np.arange(KEYS), "value": [f"value {each}" for each in range(KEYS)]})


def _prices(random: np.random.Generator, count: int) -> Numbers:
    return np.floor(10 ** (random.random(count) * 6 + 2)).astype(np.int64)


def _chosen(texts: tuple[str, ...], place: Numbers) -> pa.Array:
    return pa.array(texts).take(pa.array(place))


def _extra(number: Numbers) -> pa.Array:
    return _chosen(tuple(f"extra {each} c{'c' * (each % 3)}" for each in range(97)), number % 97)


def _moments(times: Numbers) -> pa.Array:
    return pa.array(times).cast(pa.timestamp("us"))
