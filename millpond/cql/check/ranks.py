"""ROW_NUMBER, RANK and DENSE_RANK in a SELECT list, and ORDER BY … LIMIT."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from millpond.cql.algebra import Over, Project, Rank
from millpond.cql.check.items import Item
from millpond.cql.check.over import over_call, valued
from millpond.cql.expressions import Column, SortKey
from millpond.cql.node import Node
from millpond.cql.text.places import StatementError
from millpond.cql.text.ranking import Limit, Order, Ranking, Sorting

MOST_ROWS = 2**31 - 1


@dataclass(frozen=True)
class Ranks:
    """The ranks that a SELECT asks for.

    Its other columns are computed first; before them when a row came, behind them what ranks are
    divided and ordered by. Ranks are found over these rows.
    """

    select: exp.Select
    items: Sequence[Item]
    arrival: Sequence[Item] = ()
    """When and as which elements of a stream came: what is told apart by nothing else is by this.
    """

    @property
    def plain(self) -> list[Item]:
        """When a row came, and the items that are no ranks."""
        items = [item for item in self.items if not isinstance(item.body, Ranking)]
        return [*self.arrival, *items]

    @property
    def _rankings(self) -> list[Ranking]:
        return [item.body for item in self.items if isinstance(item.body, Ranking)]

    def wanted(self, named: Callable[[exp.Expr, Sequence[Item]], Item]) -> list[Item]:
        """What ranks are divided and ordered by, and what other functions are of, in order;
        ``named`` finds what a name behind BY means."""
        found: list[Item] = []
        for ranking in self._rankings:
            nodes = [*ranking.args["partition"], *(key.this for key in ranking.sorts)]
            found += [self._by(node, named) for node in nodes]
            found += [Item("argument", node) for node in valued(ranking)]
        order = self.select.args.get("order")
        nodes = [] if order is None else _expressions(order)
        return found + [self._by(node, named) for node in nodes]

    def _by(self, node: exp.Expr, named: Callable[[exp.Expr, Sequence[Item]], Item]) -> Item:
        item = named(node, self.items)
        if isinstance(item.body, Ranking):
            message = "the order goes by a rank: have it as a column of a subquery in FROM"
            raise StatementError(message, node)
        return item

    def over(self, computed: Project, names: tuple[str, ...]) -> Project:
        """The rows that were computed with their ranks, the first of them, under these names."""
        base, places = _without_copies(computed)
        at, plan = iter(places[len(self.plain) :]), base
        ranked: Node = plan
        for ranking in self._rankings:
            partition = tuple(_column(base, next(at)) for _ in ranking.args["partition"])
            order = tuple(_key(base, next(at), key) for key in ranking.sorts)
            if ranking.is_rank:
                ranked = Rank(ranked, partition, order, ranking.args["kind"])
            else:
                argument = _column(base, next(at)) if valued(ranking) else None
                ranked = Over(ranked, partition, order, over_call(ranking, argument, order))
        limit = self.select.args.get("limit")
        if limit is not None:
            order = _keys(base, at, self.select.args["order"])
            kind = "rank" if limit.args["ties"] else "row_number"
            ranked = Rank(ranked, (), order, kind, _number(limit))
        return Project(ranked, self._columns(ranked, places, len(base.schema)), names)

    def _columns(self, ranked: Node, places: Sequence[int], first_rank: int) -> tuple[Column, ...]:
        """Where each item stands in the ranked rows."""
        plain, ranks = (
            iter(places[len(self.arrival) :]),
            iter(range(first_rank, len(ranked.schema))),
        )
        found = [next(ranks if isinstance(i.body, Ranking) else plain) for i in self.items]
        return tuple(_column(ranked, place) for place in found)


def _without_copies(computed: Project) -> tuple[Project, list[int]]:
    """The columns, equal ones once, and where each of them is then."""
    different = list(dict.fromkeys(computed.expressions))
    places = [different.index(each) for each in computed.expressions]
    kept = [places.index(place) for place in range(len(different))]
    names = tuple(computed.names[position] for position in kept)
    written = tuple(computed.written[position] for position in kept)
    return Project(computed.input, tuple(different), names, written), places


def check_order(select: exp.Select) -> None:
    """Refuses ORDER BY and LIMIT without each other, and ranks of different rows."""
    order, limit = select.args.get("order"), select.args.get("limit")
    if order is not None and limit is None:
        raise StatementError(
            "a continuous result has no order; ORDER BY goes with LIMIT n, which keeps the first n",
            order,
        )
    if limit is not None and order is None:
        raise StatementError(
            "LIMIT needs an ORDER BY, which says the rows it keeps; [ROWS n] keeps the last "
            "elements of a stream",
            limit,
        )
    is_ranked = any(isinstance(node.unalias(), Ranking) for node in select.expressions)
    if select.args.get("distinct") is not None and (limit is not None or is_ranked):
        raise StatementError(
            "have the SELECT DISTINCT in a subquery in FROM, and rank that", select
        )


def _expressions(order: Order) -> list[exp.Expr]:
    return [key.this for key in order.expressions]


def _keys(base: Node, at: Iterator[int], order: Order) -> tuple[SortKey, ...]:
    """The columns at the next places as sort keys."""
    return tuple(_key(base, next(at), key) for key in order.expressions)


def _key(base: Node, position: int, key: Sorting) -> SortKey:
    return SortKey(_column(base, position), key.args["descending"], key.args["nulls_first"])


def _column(node: Node, position: int) -> Column:
    field = node.schema[position]
    return Column(position, field.type, field.name)


def _number(limit: Limit) -> int:
    text = str(limit.this.this)
    if not text.isdigit() or int(text) > MOST_ROWS:
        raise StatementError(f"LIMIT takes a whole number up to {MOST_ROWS:,}", limit)
    return int(text)
