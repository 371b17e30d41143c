"""Random MATCH_RECOGNIZE clauses, as a part of the generator of queries."""

from __future__ import annotations

from dataclasses import replace

VARIABLES = "ABC"
NUMBERS = ("INT", "BIGINT", "DOUBLE")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class PatternGenerator:
    """Draws patterns, conditions and measures over the columns of a stream."""

    def match_recognize(self, columns):
        """The clause, and the (name, type) of what it tells."""
        partition = [c for c in self.some(columns, 0, 2) if c.name != "t"]
        pattern, _ = self.sequence(2)
        used = [v for v in VARIABLES if v in pattern]
        within = f" WITHIN {self.random.randint(1, 8)}" if self.chance(0.75) else ""
        if within and self.chance(0.3):
            absent = self.random.choice(VARIABLES)
            pattern += f" NOT {absent}"
        defined = [v for v in VARIABLES if v in pattern and self.chance(0.85)]
        conditions = [f"{v} AS {self.condition(v, used, columns)}" for v in defined]
        measures, told = self.measures(used, columns)
        by = ", ".join(c.name for c in partition)
        parts = [
            f"PARTITION BY {by}" if by else "",
            f"MEASURES {measures}",
            self.random.choice(["", "ONE ROW PER MATCH"]),
            self.skip(used),
            f"PATTERN ({pattern}){within}",
            f"DEFINE {', '.join(conditions)}" if conditions else "",
        ]
        schema = [(c.name, c.type) for c in partition] + told
        return f"MATCH_RECOGNIZE ({' '.join(filter(None, parts))})", tuple(schema)

    def skip(self, used):
        kind = self.weighted(none=2, past=1, next=3, first=1, last=1)
        variable = self.random.choice(used)
        return {
            "none": "",
            "past": "AFTER MATCH SKIP PAST LAST ROW",
            "next": "AFTER MATCH SKIP TO NEXT ROW",
            "first": f"AFTER MATCH SKIP TO FIRST {variable}",
            "last": f"AFTER MATCH SKIP TO LAST {variable}",
        }[kind]

    # Patterns: (text, whether it may match no row).

    def sequence(self, depth):
        parts = [self.part(depth) for _ in range(self.random.choice([1, 2, 2, 3]))]
        if all(is_empty for _, is_empty in parts):
            parts.append((self.random.choice(VARIABLES), False))
        return " ".join(text for text, _ in parts), False

    def part(self, depth):
        text, is_empty = self.random.choice(VARIABLES), False
        if depth and self.chance(0.35):
            ways = [self.sequence(depth - 1)[0] for _ in range(self.random.choice([1, 2, 2]))]
            text = f"({' | '.join(ways)})"
        if self.chance(0.5):
            times = self.random.choice(["*", "+", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}"])
            is_empty = times in ("*", "?", "{,2}")
            text += times + ("?" if self.chance(0.35) else "")
        return text, is_empty

    # Conditions and measures.

    def condition(self, own, used, columns):
        """A condition of a variable; it may speak of rows of others."""
        if self.chance(0.45):
            return self.predicate(self.of(own, columns), 1)
        if self.chance(0.2):
            word = self.random.choice(["AND", "OR"])
            left, right = (self.compared(own, used, columns) for _ in range(2))
            return f"({left} {word} {right})"
        return self.compared(own, used, columns)

    def of(self, variable, columns):
        return [replace(column, qualifier=variable) for column in columns]

    def compared(self, own, used, columns):
        """A comparison of a row with others."""
        symbol = self.random.choice(COMPARISONS)
        kind = self.weighted(prev=3, other=3, count=1, total=1, ends=1)
        numbers = [c for c in columns if c.type in NUMBERS]
        if kind == "count" or not numbers:
            of = self.random.choice(["*", *(f"{v}.*" for v in used)])
            return f"count({of}) {symbol} {self.random.randint(1, 3)}"
        column, other = self.random.choice(numbers).name, self.random.choice(used)
        subject = self.random.choice([f"{own}.{column}", column])
        if kind == "prev":
            far = self.random.choice(["", "", ", 2"])
            inner = self.random.choice([f"{own}.{column}", column, f"{other}.{column}"])
            return f"{subject} {symbol} PREV({inner}{far})"
        if kind == "total":
            call = self.random.choice(["sum", "avg", "min", "max"])
            return f"{call}({other}.{column}) {symbol} {subject}"
        if kind == "ends":
            return f"{subject} {symbol} {self.random.choice(['FIRST', 'LAST'])}({other}.{column})"
        return f"{subject} {symbol} {other}.{column}"

    def measures(self, used, columns):
        """(text, [(name, type)])."""
        texts, told = [], []
        for _ in range(self.random.randint(1, 3)):
            text, type_name = self.told(self.random.choice(used), columns)
            self.outputs += 1
            texts.append(f"{text} AS m{self.outputs}")
            told.append((f"m{self.outputs}", type_name))
        return ", ".join(texts), told

    def told(self, variable, columns):
        column = self.random.choice(columns)
        of = self.random.choice([f"{variable}.{column.name}", column.name])
        kind = self.weighted(plain=2, first=2, last=2, prev=1, count=2, extreme=1, total=2)
        if kind == "count":
            inner = self.random.choice(["*", f"{variable}.*", of])
            return f"count({inner})", "BIGINT"
        if kind == "extreme":
            return f"{self.random.choice(['min', 'max'])}({of})", column.type
        if kind == "total" and column.type in NUMBERS:
            call = self.random.choice(["sum", "avg"])
            whole = "DOUBLE" if column.type == "DOUBLE" or call == "avg" else "BIGINT"
            return f"{call}({of})", whole
        if kind == "prev":
            inner = self.random.choice([of, f"FIRST({of})", f"LAST({of})"])
            return f"PREV({inner}{self.random.choice(['', ', 2'])})", column.type
        call = {"first": "FIRST({})", "last": "LAST({})"}.get(kind, "{}")
        return call.format(of), column.type
