"""Events as NEXMark's generator draws them: of 50, one person, three auctions and 46 bids.

Half the bids go to an auction that is hot for a while, and auctions are mostly of new sellers.
Several events have the same time, prices repeat, and no bid is for an auction that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

Table = pa.Table

CYCLE, PERSONS, AUCTIONS = 50, 1, 3
FIRST = 1_436_918_400_000_000
"""The time of the first event, in microseconds."""
HOT, IN_FLIGHT = 100, 100
CITIES = np.array(["Phoenix", "Palo Alto", "Seattle", "Boise", "Portland"])


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
    def _persons(number: np.ndarray, times: np.ndarray, random: np.random.Generator) -> Table:
        ids = number // CYCLE
        names = [f"person {each}" for each in ids]
        cities = CITIES[random.integers(0, len(CITIES), len(ids))]
        columns = {"id": ids, "name": names, "city": pa.array(cities.tolist())}
        return pa.table(columns | {"dateTime": _moments(times)})

    @staticmethod
    def _auctions(number: np.ndarray, times: np.ndarray, random: np.random.Generator) -> Table:
        ids = number // CYCLE * AUCTIONS + number % CYCLE - PERSONS
        sellers = np.maximum(number // CYCLE - random.integers(0, 4, len(ids)), 0)
        category = random.integers(10, 15, len(ids)).astype(np.int32)
        columns = {"id": ids, "seller": sellers, "category": category}
        return pa.table(columns | {"dateTime": _moments(times)})

    @staticmethod
    def _bids(number: np.ndarray, times: np.ndarray, random: np.random.Generator) -> Table:
        last = number // CYCLE * AUCTIONS + AUCTIONS - 1
        near = np.maximum(last - random.integers(0, IN_FLIGHT, len(last)), 0)
        auction = np.where(random.random(len(last)) < 0.5, last // HOT * HOT, near)
        bidder = np.maximum(number // CYCLE - random.integers(0, 50, len(last)), 0)
        price = np.floor(10 ** (random.random(len(last)) * 4 + 2)).astype(np.int64)
        extra = [f"extra {each % 97}" for each in number]
        columns = {"auction": auction, "bidder": bidder, "price": price}
        return pa.table(columns | {"dateTime": _moments(times), "extra": extra})


def _moments(times: np.ndarray) -> pa.Array:
    return pa.array(times).cast(pa.timestamp("us"))
