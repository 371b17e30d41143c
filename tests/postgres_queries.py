"""Random queries that CQL and PostgreSQL write and mean alike, over tables of four columns.

Sorts say where NULL stands, and whatever numbers rows goes by the unique column ``n`` last, since
both are each system's own choice.
"""

from __future__ import annotations

COLUMNS = (("k", "INT"), ("v", "INT"), ("s", "STRING"), ("n", "INT"))
"""``n`` is unique and never NULL."""
TABLES = ("A", "B", "R", "C")
"""Windows of a range and of rows, a relation, and sessions, which have their bounds too."""
NULLS = ("NULLS FIRST", "NULLS LAST")
FRAMES = (
    "",
    "ROWS 2 PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
)


class PostgresQueries:
    """Draws queries; all choices come from one ``random.Random``."""

    def __init__(self, random):
        self.random = random
        self.aliases = 0

    def chance(self, probability):
        return self.random.random() < probability

    def one(self, *choices):
        return self.random.choice(choices)

    def alias(self):
        self.aliases += 1
        return f"t{self.aliases}"

    def query(self):
        """A query with a construct of each kind as often."""
        kinds = (self.grouped, self.over, self.first, self.ranked, self.named, self.correlated)
        return self.one(*kinds, self.lateral, self.combined, self.sessions)()

    # Parts.

    def number(self, alias):
        return self.one(
            f"{alias}.k", f"{alias}.v", f"{alias}.v", f"{alias}.v + {alias}.k",
            f"coalesce({alias}.v, 0)", f"CASE WHEN {alias}.v > 1 THEN {alias}.k ELSE 0 END",
        )  # fmt: skip

    def condition(self, alias):
        """A condition on the rows of one table."""
        value = self.one("0", "1", "2")
        found = self.one(
            f"{self.number(alias)} {self.one('<', '<=', '=', '<>', '>')} {value}",
            f"{alias}.s {self.one('=', '<>')} '{self.one('a', 'b')}'",
            f"{alias}.v IS {self.one('', 'NOT ')}NULL",
            f"{alias}.k BETWEEN 0 AND {value}",
            f"{alias}.s LIKE '%{self.one('a', 'B')}'",
        )
        return f"NOT ({found})" if self.chance(0.2) else found

    def where(self, alias, share=0.4):
        return f" WHERE {self.condition(alias)}" if self.chance(share) else ""

    def source(self):
        """(FROM, an alias in it): a table or a join."""
        left = self.alias()
        text = f"{self.one(*TABLES)} {left}"
        if self.chance(0.4):
            right = self.alias()
            kind = self.one("JOIN", "LEFT JOIN", "FULL JOIN")
            text += f" {kind} {self.one(*TABLES)} {right} ON {left}.k = {right}.k"
        return text, left

    def aggregate(self, alias):
        """An aggregate, of some of the rows at times."""
        value = self.number(alias)
        call = self.one(
            "count(*)", f"count({value})", f"sum({value})", f"min({alias}.s)", f"max({value})",
            f"avg(CAST({value} AS DOUBLE PRECISION))", f"count(DISTINCT {value})",
            f"sum(DISTINCT {value})",
        )  # fmt: skip
        return call + (f" FILTER (WHERE {self.condition(alias)})" if self.chance(0.3) else "")

    def sort(self, alias, more):
        key = self.one(f"{alias}.k", f"{alias}.v", f"{alias}.s")
        return f"ORDER BY {key} {self.one('ASC', 'DESC')} {self.one(*NULLS)}{more}"

    # Kinds of queries.

    def grouped(self):
        text, alias = self.source()
        keys = self.random.sample([f"{alias}.k", f"{alias}.s"], self.one(0, 1, 1, 2))
        calls = [self.aggregate(alias) for _ in range(self.one(1, 2))]
        if len(keys) == 2 and self.chance(0.4):
            calls.append(f"grouping({', '.join(keys)})")
        items = [f"{each} AS c{number}" for number, each in enumerate((*keys, *calls))]
        by = f" GROUP BY {self.grouping(keys)}" if keys else ""
        having = f" HAVING count(*) > {self.one(1, 2)}" if self.chance(0.3) else ""
        return f"SELECT {', '.join(items)} FROM {text}{self.where(alias)}{by}{having}"

    def grouping(self, keys):
        listed = ", ".join(keys)
        sets = f"GROUPING SETS (({listed}), ({keys[0]}), ())"
        several = (f"ROLLUP ({listed})", f"CUBE ({listed})", sets)
        return self.one(listed, *several)

    def over(self):
        alias = self.alias()
        by = f"PARTITION BY {alias}.{self.one('k', 's')} " if self.chance(0.6) else ""
        calls = ", ".join(f"{self.over_call(alias, by)} AS o{n}" for n in range(self.one(1, 2)))
        where = self.where(alias)
        return f"SELECT {alias}.n, {calls} FROM {self.one(*TABLES)} {alias}{where}"

    def over_call(self, alias, by):
        value = self.one(f"{alias}.k", f"{alias}.v")
        order = self.sort(alias, f", {alias}.n")
        if self.chance(0.4):
            call = self.one(f"lag({value})", f"lead({value}, 2)", "ntile(2)", f"lag({value}, 0)")
            return f"{call} OVER ({by}{order})"
        call = self.one(
            f"sum({value})", f"count({value})", f"min({value})", f"max({value})", "count(*)",
            f"first_value({value})", f"last_value({value})",
        )  # fmt: skip
        if self.chance(0.2):
            key = f"ORDER BY {alias}.n {self.one('ASC', 'DESC')}"
            return (
                f"{call} OVER ({by}{key} RANGE BETWEEN 3 PRECEDING AND {self.one(0, 2)} FOLLOWING)"
            )
        return f"{call} OVER ({by}{order} {self.one(*FRAMES)})"

    def first(self):
        alias = self.alias()
        items = f"SELECT {alias}.k, {alias}.v, {alias}.s FROM {self.one(*TABLES)} {alias}"
        if self.chance(0.5):
            return f"{items}{self.where(alias)} {self.sort(alias, '')} FETCH FIRST 2 ROWS WITH TIES"
        return (
            f"{items}{self.where(alias)} {self.sort(alias, f', {alias}.n')} LIMIT {self.one(1, 3)}"
        )

    def ranked(self):
        alias, around = self.alias(), self.alias()
        function = self.one("ROW_NUMBER", "RANK", "DENSE_RANK")
        more = f", {alias}.n" if function == "ROW_NUMBER" else ""
        by = f"PARTITION BY {alias}.k " if self.chance(0.6) else ""
        over = f"{function}() OVER ({by}{self.sort(alias, more)}) AS place"
        inner = f"SELECT {alias}.*, {over} FROM {self.one(*TABLES)} {alias}{self.where(alias)}"
        return f"SELECT * FROM ({inner}) {around} WHERE place <= {self.one(1, 2)}"

    def named(self):
        """WITH of a query that is read twice, or joined."""
        alias, other = self.alias(), self.alias()
        text, source = self.source()
        inner = f"SELECT {source}.k, {self.aggregate(source)} FROM {text} GROUP BY {source}.k"
        rest = self.one(
            f"SELECT {alias}.x, {other}.n FROM w {alias} JOIN {self.one(*TABLES)} {other} "
            f"ON {alias}.g = {other}.k",
            f"SELECT {alias}.g, {other}.x FROM w {alias}, w {other} WHERE {alias}.g < {other}.g",
            f"SELECT count(*) AS c FROM w {alias} WHERE {alias}.x IS NOT NULL",
        )
        return f"WITH w (g, x) AS ({inner}) {rest}"

    def correlated(self):
        """Subqueries in WHERE and SELECT, also of subqueries."""
        alias, inner, deep = self.alias(), self.alias(), self.alias()
        near = self.one(f"{inner}.k = {alias}.k", f"{inner}.n <= {alias}.n", self.condition(inner))
        if self.chance(0.5):
            far = self.one(f"{deep}.v = {alias}.v", f"{deep}.n > {alias}.n")
            own = f"{deep}.k = {inner}.k AND {far}"
            near += f" AND {self.one('', 'NOT ')}EXISTS (SELECT 1 FROM {self.one(*TABLES)} {deep}"
            near += f" WHERE {own})"
        rows = f"FROM {self.one(*TABLES)} {inner} WHERE {near}"
        outer = f"FROM {self.one(*TABLES)} {alias}"
        if self.chance(0.3):
            return f"SELECT {alias}.n, (SELECT {self.aggregate(inner)} {rows}) AS x {outer}"
        test = self.one(
            f"{self.one('', 'NOT ')}EXISTS (SELECT {inner}.v {rows})",
            f"{alias}.v {self.one('', 'NOT ')}IN (SELECT {inner}.v {rows})",
            f"({alias}.k, {alias}.v) IN (SELECT {inner}.k, {inner}.v {rows})",
            f"{alias}.v {self.one('>=', '<')} {self.one('ALL', 'ANY')} (SELECT {inner}.v {rows})",
            f"{alias}.k < (SELECT count(*) {rows})",
        )
        return f"SELECT {alias}.k, {alias}.n {outer} WHERE {test}"

    def lateral(self):
        alias, inner, name = self.alias(), self.alias(), self.alias()
        near = self.one(
            f"{inner}.k = {alias}.k", f"{inner}.n > {alias}.n", f"{inner}.v < {alias}.k"
        )
        rows = f"FROM {self.one(*TABLES)} {inner} WHERE {near}"
        query = self.one(
            f"SELECT {inner}.v AS x {rows}",
            f"SELECT {self.aggregate(inner)} AS x {rows}",
            f"SELECT {inner}.s AS x {rows} {self.sort(inner, f', {inner}.n')} LIMIT 2",
            f"SELECT count(*) AS x {rows} GROUP BY {inner}.s",
        )
        join = self.one(", LATERAL ({0}) {1}", " LEFT JOIN LATERAL ({0}) {1} ON TRUE")
        text = join.format(query, name)
        return f"SELECT {alias}.n, {name}.x FROM {self.one(*TABLES)} {alias}{text}"

    def sessions(self):
        """The bounds of sessions, with what is in each."""
        alias = self.alias()
        items = f"{alias}.k, {alias}.window_start, {alias}.window_end"
        if self.chance(0.3):
            return f"SELECT {items}, {alias}.n FROM C {alias}{self.where(alias)}"
        calls = f"count(*) AS c, {self.aggregate(alias)} AS x"
        return f"SELECT {items}, {calls} FROM C {alias}{self.where(alias)} GROUP BY {items}"

    def combined(self):
        """A set operation."""
        left, right = self.alias(), self.alias()
        word = self.one("UNION", "EXCEPT", "INTERSECT") + self.one("", " ALL")
        one = f"SELECT {left}.k, {left}.s FROM {self.one(*TABLES)} {left}{self.where(left)}"
        other = f"SELECT {right}.k, {right}.s FROM {self.one(*TABLES)} {right}{self.where(right)}"
        return f"{one} {word} {other}"
