"""Attacks on a server that runs in a process of its own: what is sent, and what must not happen.

`python -m tests.attacks [--seed N]` makes them all and counts what is broken: an answer of 500 or
more, none at all, one that takes too long, or one that has the secret of the server in it; or a
server that is no more, or wrong, afterwards. Every address comes from the server's own description,
so that a new one is attacked without being named here.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from millpond.server.tokens import new_token
from tests.patience import PATIENCE_SECONDS
from tests.server.arrow_bodies import damaged, originals
from tests.server.serving import free_port

SECRET = "hush-hush-0123456789"
SECONDS = PATIENCE_SECONDS
"""An answer that takes longer is one too few."""
PAUSE_SECONDS = 0.5
"""So long an answer is waited for where the server may wait for the rest of a request."""
MOST_MEMORY_KB = 1_500_000

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE STREAM T (t BIGINT, a INT) TIMESTAMP BY t;
CREATE RELATION R (a INT PRIMARY KEY, name STRING);
CREATE QUERY counts AS SELECT a, COUNT(*) AS n FROM S [RANGE 1000000] GROUP BY a;
CREATE QUERY big AS SELECT a FROM S WHERE a > 1;
CREATE QUERY "right" AS SELECT a + 1 AS b FROM T WHERE a > 1;
"""


@dataclass(frozen=True)
class Attack:
    """One request, as it goes over the wire, and what it may be answered with."""

    name: str
    raw: bytes
    statuses: frozenset[int] = frozenset(range(100, 500))
    may_close: bool = False
    """Whether the server may also say nothing: wait for more, or close the connection."""


@dataclass(frozen=True)
class Answer:
    """The status (0: none) and the text of an answer."""

    status: int
    text: bytes


@dataclass
class Target:
    """A server to be attacked."""

    port: int
    process: subprocess.Popen[bytes]
    tokens: dict[str, str]
    plan: Path
    log: Path

    def send(self, raw: bytes, seconds: float = SECONDS) -> Answer:
        """Sends bytes, and reads what comes until the connection is closed."""
        found = bytearray()
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            with suppress(OSError):  # it may be refused before all of it was sent
                connection.sendall(raw)
            try:
                while len(found) < 2**20 and (piece := connection.recv(65_536)):
                    found += piece
            except ConnectionError:
                pass
            except TimeoutError:
                if seconds == SECONDS:
                    raise
        first = bytes(found[:12]).split()
        return Answer(int(first[1]) if len(first) > 1 else 0, bytes(found))

    def ask(self, method: str, path: str, body: Any = None, role: str = "admin") -> Any:
        """A proper request, and the JSON that is answered."""
        content = b"" if body is None else json.dumps(body).encode()
        answer = self.send(request(method, path, content, token=self.tokens[role]))
        assert answer.status < 300, answer.text
        return json.loads(answer.text.partition(b"\r\n\r\n")[2] or b"null")

    def memory_kb(self) -> int:
        """The most memory that the process has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if "VmHWM" in line).split()[1])


def request(
    method: str,
    path: str,
    body: bytes = b"",
    token: str | None = None,
    headers: Sequence[tuple[str, str]] = (),
    kind: str = "application/json",
) -> bytes:
    """A request as bytes; headers given take the place of the usual ones."""
    usual = {"host": "127.0.0.1", "connection": "close", "content-length": str(len(body))}
    usual |= {"content-type": kind} if body else {}
    usual |= {"authorization": f"Bearer {token}"} if token else {}
    own = {name.lower() for name, _ in headers}
    lines = [f"{name}: {value}" for name, value in usual.items() if name not in own]
    lines += [f"{name}: {value}" for name, value in headers]
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""])
    return head.encode("latin-1") + body


@contextmanager
def target() -> Iterator[Target]:
    """A server with tokens, a secret, a root and a mirror of its plan."""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        tokens = {role: new_token(role) for role in ("read", "write", "admin")}
        (directory / "tokens").write_text("\n".join(line for _, line in tokens.values()))
        (directory / "tokens").chmod(0o600)
        (directory / "script.cql").write_text(SCRIPT)
        (directory / "root").mkdir()
        (directory / "root" / "fine.csv").write_text("t,a\n1,1\n")
        plan, log, port = directory / "plan.xml", directory / "log", free_port()
        options = ["--port", str(port), "--tokens", str(directory / "tokens"), "--plan", str(plan)]
        options += ["--root", str(directory / "root"), "--ask-seconds", "5"]
        command = [sys.executable, "-m", "millpond", "serve", str(directory / "script.cql")]
        environment = os.environ | {"MILLPOND_SECRET_KEY": SECRET}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *options], stdout=output, stderr=output, env=environment
            )
        attacked = Target(port, process, {r: token for r, (token, _) in tokens.items()}, plan, log)
        try:
            _wait_for(attacked)
            yield attacked
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(attacked: Target) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert attacked.process.poll() is None, attacked.log.read_text()
        try:
            if attacked.send(request("GET", "/ready")).status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError("it never was ready")


# -- what is sent ---------------------------------------------------------------------------

NAMES = (
    "nothing",
    "%00",
    "..%2f..%2fetc%2fpasswd",
    "%ff%fe",
    "%ed%a0%80",
    "~one",
    "S@1",
    "S%231",
    "big%23left_out",
    "x" * 300,
    "%0d%0aSet-Cookie:%20a",
    "%20",
    "'",
    "%22",
    "S;DROP%20QUERY%20big",
    "%F0%9F%92%A5",
    "__class__",
    "-1",
    "NaN",
    "{name}",
)

BODIES: tuple[tuple[str, bytes], ...] = (
    ("nothing", b""),
    ("null", b"null"),
    ("a list", b"[]"),
    ("a number", b"5"),
    ("text", b'"x"'),
    ("half", b'{"text": '),
    ("a wrong type", b'{"text": 5, "value": {}, "time": [], "name": 1}'),
    ("no text", b'{"text": null, "name": null}'),
    ("not UTF-8", b'{"text": "\xff\xfe"}'),
    (
        "half a pair",
        b'{"text": "SELECT \'\\ud800\' AS x FROM S", "name": "q\\ud800", "time": "\\ud800"}',
    ),
    ("zero bytes", b"\0" * 50),
    ("deep", b"[" * 50_000),
    ("UTF-16", '{"text": "x"}'.encode("utf-16")),
    ("NaN", b'{"value": NaN, "weight": NaN, "time": NaN}'),
    (
        "huge",
        b'{"value": 1e999, "weight": 1e999, "time": 99999999999999999999999999, "seconds": 1e99}',
    ),
    ("digits", b'{"value": ' + b"9" * 5_000 + b', "time": ' + b"9" * 5_000 + b"}"),
    ("twice", b'{"text": "SHOW ALL", "text": 5}'),
    ("gzip", b"\x1f\x8b\x08\x00" + b"\0" * 60),
)

TEXTS = (
    "",
    ";",
    "-- nothing",
    "/* open",
    "'open",
    '"',
    "SELECT",
    "SELECT 1",
    "SELECT * FROM S",
    "SHOW",
    "SELECT '\x01' AS x FROM S",
    'CREATE QUERY "a\x01b" AS SELECT a FROM S',
    'CREATE STREAM "S@1" (a INT)',
    'CREATE RELATION "~one" (a INT)',
    'CREATE QUERY "big#left_out" AS SELECT a FROM S',
    'SELECT * FROM "~one"',
    'SELECT * FROM "R@1"',
    'CREATE VIEW "v~" AS SELECT a FROM R',
    "SELECT a FROM S; DROP QUERY big",
    "CREATE STREAM X (a INT) FROM rate('env:MILLPOND_SECRET_KEY')",
    "CREATE STREAM X (a INT) FROM burst('env:MILLPOND_SECRET_KEY')",
    "CREATE STREAM X (a INT) FROM burst('poisson', rate = 'env:MILLPOND_SECRET_KEY')",
    "CREATE STREAM X (a INT) FROM rate(1, seed = 'env:MILLPOND_SECRET_KEY')",
    "CREATE STREAM X (a INT) FROM rate(1, start = 'env:MILLPOND_SECRET_KEY')",
    "CREATE STREAM X (a INT) FROM csv('env:MILLPOND_SECRET_KEY')",
    "CREATE STREAM X (a INT) FROM csv('fine.csv', delimiter = 'env:MILLPOND_SECRET_KEY')",
    "CREATE STREAM X (a INT) FROM csv('fine.csv', header = 'env:MILLPOND_SECRET_KEY')",
    "CREATE STREAM X (a INT) FROM rate('env:PATH')",
    "CREATE STREAM X (a INT) FROM csv('/etc/passwd')",
    "CREATE STREAM X (a INT) FROM stdin()",
    "SET store = '/tmp/x'",
    "SET spark_master = 'spark://x'",
    "SELECT CAST(1e300 AS BIGINT) AS x FROM S",
    "SELECT CAST(9223372036854775808.0 AS BIGINT) FROM R",
    "SELECT a FROM S WHERE " + " OR ".join(["a = 1"] * 2_000),
    "SELECT " + "(" * 500 + "a" + ")" * 500,
    "SELECT a FROM S [RANGE 99999999999999999999]",
    "SELECT a FROM S [ROWS -1]",
    "SELECT a FROM S [ROWS 0]",
    "SELECT a FROM S [RANGE 1 SLIDE 0]",
    "SELECT a FROM S SAMPLE(200)",
    "SELECT a FROM S [RANGE '1; DROP']",
    "SELECT a FROM nothing",
    "SELECT nothing FROM S",
    "SELECT a, a FROM S",
    "SELECT count(*) FROM S GROUP BY",
    "INSERT INTO R VALUES (1)",
    "INSERT INTO R VALUES ('x', 'y')",
    "DELETE FROM S",
    "UPDATE R SET nothing = 1",
    "DROP STREAM S",
    "DROP QUERY nothing",
    "ALTER QUERY nothing SET WEIGHT 2",
    "ALTER QUERY big SET WEIGHT -1",
    "ALTER STREAM S DELAY -1",
    "ALTER PLAN QUEUE AFTER op9999",
    "SET nothing = 1",
    "SET budget = '-5'",
    "SET strategy = 'chain(x = 1'",
    "EXPLAIN SELECT nothing FROM S",
    "SELECT x.a FROM S x, S y, S z, R",
    "SELECT reflect('java.lang.System', 'exit', 1) FROM S",
    "SELECT a FROM S \ufeff",
    "ＳＥＬＥＣＴ a FROM S",
    "SELECT rpad(name, 2147483647, 'x') AS x FROM R",
    "SELECT repeat('x', 2147483647) FROM R",
    "SELECT power(10, 400) AS x FROM R",
    "SELECT a % 0 AS x, a / 0 AS y FROM R",
    "SELECT a FROM R LIMIT 5",
    "SELECT a FROM S WHERE name LIKE '\\'",
    "SELECT split_part('a', 'b', 0) AS x FROM R",
    "x" * 90_000,
)

ROWS: tuple[tuple[str, bytes], ...] = (
    ("application/json", b'[{"t": 1}]'),
    ("application/json", b'[{"t": "x", "a": 1}]'),
    ("application/json", b"[[1]]"),
    ("application/json", b"[1, 2]"),
    ("application/json", b'{"t": null, "a": 1}'),
    ("application/json", b'[{"t": 1, "a": 99999999999}]'),
    ("application/json", b'[{"t": 1e400, "a": 1}]'),
    ("application/json", b'[{"t": 1, "a": 1, "b": "\\ud800"}]'),
    ("application/json", b'[{"\\ud800": 1}]'),
    ("application/json", b'[{"t": 1, "a": ' + b"9" * 6_000 + b"}]"),
    ("application/x-ndjson", b'{"t":1,"a":1}\n{'),
    ("application/x-ndjson", b"\xff\xfe\n"),
    ("application/x-ndjson", b"null\n"),
    ("application/x-ndjson", b"[" * 30_000),
    ("text/csv", b"\xff\xfe"),
    ("text/csv", b"t,a\n1"),
    ("text/csv", b"t,a\nx,y\n"),
    ("text/csv", b"b\n1\n"),
    ("text/csv", b't,a\n"'),
    ("text/csv", b"t,t\n1,2\n"),
    ("text/csv", b"\0\0\0"),
    ("text/csv", b"\n\n\n"),
    ("text/html", b"<x>"),
    ("multipart/form-data", b"--x"),
    ("application/octet-stream", b"\0"),
    ("application/vnd.apache.arrow.stream", b""),
    ("application/vnd.apache.arrow.file", b"ARROW1"),
    ("application/vnd.apache.arrow.file", b"ARROW1\0\0" * 3),
    ("application/vnd.apache.arrow.stream", b"\xff" * 64),
    ("application/vnd.apache.arrow.stream", b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
    ("\x80\xff", b"x"),
)

DOCUMENTS = (
    b"",
    b"<plan",
    b"<html/>",
    b"\xff\xfe<plan/>",
    b"<plan><query/></plan>",
    b"<plan>" * 500,
    b'<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><plan>&x;</plan>',
    b'<plan><query name="a&#1;b"><cql>SELECT a FROM S</cql></query></plan>',
    b'<plan><query name="big#left_out"><cql>SELECT a FROM S</cql></query></plan>',
    b'<plan><stream name="S@1"><cql>CREATE STREAM "S@1" (a INT)</cql></stream></plan>',
    b'<plan><query name="x"><cql>SELECT a FROM S; DROP QUERY big</cql></query></plan>',
    (
        b'<plan><query name="x"><select condition="a > 1; DROP QUERY big"><stream name="S"/>'
        b"</select></query></plan>"
    ),
    b'<plan><set name="store" value="/tmp/x"/></plan>',
    b'<plan><set name="strategy" value="&#9;"/></plan>',
    b'<plan><query name="x" weight="1e999"><cql>SELECT a FROM S</cql></query></plan>',
    b'<plan><queue after="op1; DROP QUERY big" present="true"/></plan>',
)

HEADERS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("origin", "http://[::1"),),
    (("origin", "http://[::1]:8080"),),
    (("origin", "null"),),
    (("origin", ""),),
    (("origin", "http://evil"),),
    (("origin", "http://\x80"),),
    (("origin", "]"),),
    (("origin", "http://["),),
    (("host", "evil"),),
    (("host", ""),),
    (("host", "["),),
    (("host", "[::1"),),
    (("host", "127.0.0.1:x:y"),),
    (("host", "127.0.0.1@evil"),),
    (("host", "a"), ("host", "b")),
    (("content-length", "-1"),),
    (("content-length", "x"),),
    (("content-length", "99999999999999999999"),),
    (("content-length", "\xb2"),),
    (("content-length", "1"), ("content-length", "2")),
    (("transfer-encoding", "x"),),
    (("expect", "x"),),
    (("transfer-encoding", "chunked"), ("content-length", "5")),
    (("content-encoding", "gzip"),),
    (("content-encoding", "br"),),
    (("authorization", "Basic eA=="),),
    (("authorization", "Bearer"),),
    (("authorization", "Bearer \xff"),),
    (("authorization", "x" * 20_000),),
    (("accept", "\xff" * 500),),
    (("last-event-id", "x" * 60),),
    (("last-event-id", "-1"),),
    (("idempotency-key", "\x80"),),
    (("idempotency-key", "x" * 500),),
    (("idempotency-key", ""),),
    (("sec-fetch-site", "cross-site"),),
    (("x", "y" * 40_000),),
    (("upgrade", "websocket"), ("connection", "upgrade")),
    (("range", "bytes=0-1"),),
    (("content-type", "application/json; charset=x"),),
    (("content-type", ""),),
    (("cookie", "\xff"),),
    (("x-forwarded-for", "127.0.0.1, evil"),),
    (("accept-encoding", "x;q=99"),),
    (("te", "trailers"),),
)

PARAMETERS = (
    "follow=maybe",
    "from=nonsense&follow=false",
    "from=id:x&follow=false",
    "from=-5&follow=false",
    "format=exe",
    "from=99999999999999999999999&follow=false",
    "from=2026-99-99&follow=false",
    "format=xml&follow=false",
    "format=arrow&from=oldest&follow=false",
    "seconds=-1",
    "seconds=NaN",
    "seconds=1e999",
    "seconds=0.1",
    "stage=x",
    "kind=nothing",
    "kind=%00",
    "since=NaN",
    "since=-1e308",
    "since=x",
    "query=nothing",
    "format=svg",
    "replace=maybe",
    "hold=x",
    "%ff=%ff",
    "&&&===",
    "a" * 3_000,
    "from=%00&follow=false",
    "query=%ff",
    "from=present&follow=false",
)

RAW: tuple[bytes, ...] = (
    b"",
    b"\r\n\r\n",
    b"\0" * 100,
    b"GET",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET http://evil/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01",
    b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /static/../app.py HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nA\r\n\r\n",
    b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
    b"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
    b"GET " + b"/" * 70_000,
    b"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
)


@dataclass
class Attacks:
    """All attacks on a server, made from the description that it gives of itself."""

    tokens: dict[str, str]
    paths: dict[str, dict[str, Any]]
    draw: random.Random = field(default_factory=lambda: random.Random(19))

    def all(self) -> Iterator[Attack]:
        """One after the other."""
        yield from self._methods()
        yield from self._names()
        yield from self._without_rights()
        yield from self._bodies()
        yield from self._texts()
        yield from self._rows()
        yield from self._documents()
        yield from self._headers()
        yield from self._parameters()
        yield from (Attack(f"raw {raw[:30]!r}", raw, may_close=True) for raw in RAW)

    def _made(self, name: str, method: str, path: str, body: bytes = b"", **more: Any) -> Attack:
        role = more.pop("role", "admin")
        statuses = more.pop("statuses", Attack.statuses)
        token = self.tokens.get(role, role)
        raw = request(method, path, body, token, **more)
        return Attack(f"{name}: {method} {path[:60]}", raw, statuses)

    def _methods(self) -> Iterator[Attack]:
        for path, known in self.paths.items():
            for method in ("TRACE", "PUT", "DELETE", "POST", "PATCH", "HACK"):
                if method.lower() not in known:
                    yield self._made("a method", method, _filled(path, "nothing"))

    def _names(self) -> Iterator[Attack]:
        for path, known in self.paths.items():
            for name in NAMES if "{" in path else ():
                method = "GET" if "get" in known else next(iter(known)).upper()
                end = "?seconds=0.1" if path.endswith(("watch", "tuples")) else ""
                yield self._made("a name", method, _filled(path, name) + end, b'{"value": 1}')

    def _without_rights(self) -> Iterator[Attack]:
        for path, known in self.paths.items():
            for method in known if path not in ("/ping", "/ready") else ():
                where = _filled(path, "nothing")
                for role in ("", "wrong", self.tokens["admin"][:-1], self.tokens["read"].upper()):
                    yield self._made(
                        "no token", method.upper(), where, role=role, statuses=frozenset({401})
                    )
                if method != "get" and path not in ("/api/check", "/api/explain", "/api/ask"):
                    yield self._made(
                        "to read", method.upper(), where, role="read", statuses=frozenset({403})
                    )

    def _bodies(self) -> Iterator[Attack]:
        for path, known in self.paths.items():
            where = _filled(path, "S" if "stream" in path else "R" if "relation" in path else "big")
            for method in {"post", "put", "patch"} & known.keys():
                for name, body in BODIES:
                    yield self._made(name, method.upper(), where, body)

    def _texts(self) -> Iterator[Attack]:
        for text in TEXTS:
            for path in ("/api/check", "/api/explain", "/api/ask"):
                yield self._made(text[:40], "POST", path, _json(text=text), role="read")
            named = _json(text=text, name="attacked")
            yield self._made(text[:40], "POST", "/api/queries", named)
            if "DROP" not in text and "SET" not in text:
                yield self._made(text[:40], "POST", "/api/execute", _json(text=text))

    def _rows(self) -> Iterator[Attack]:
        for path in ("/api/streams/S/tuples", "/api/relations/R/rows"):
            for kind, body in ROWS:
                yield self._made("rows", "POST", path, body, kind=kind)
        arrow = "application/vnd.apache.arrow.stream"
        for number, body in enumerate([*originals(), *damaged(self.draw, 100)]):
            path = "/api/streams/S/tuples" if number % 2 else "/api/relations/R/rows"
            yield self._made(f"Arrow {number}", "POST", path, body, kind=arrow)

    def _documents(self) -> Iterator[Attack]:
        for document in DOCUMENTS:
            yield self._made("XML", "PUT", "/api/plan", document, kind="application/xml")

    def _headers(self) -> Iterator[Attack]:
        for headers in HEADERS:
            for method, path in (("GET", "/api/queries"), ("POST", "/api/streams/S/tuples")):
                body = b'{"t": 1, "a": 1}' if method == "POST" else b""
                made = self._made(f"header {headers[0]!a:.40}", method, path, body, headers=headers)
                yield Attack(made.name, made.raw, made.statuses, may_close=True)

    def _parameters(self) -> Iterator[Attack]:
        paths = (
            "/api/queries/big/results",
            "/api/queries/big/explain",
            "/api/history",
            "/api/plan",
            "/api/entities",
            "/api/entities/query/big/weight/watch",
        )
        for path in paths:
            for parameters in PARAMETERS:
                end = "&seconds=0.1" if "watch" in path and "seconds" not in parameters else ""
                end += "&follow=false" if "results" in path and "follow" not in parameters else ""
                yield self._made("parameters", "GET", f"{path}?{parameters}{end}")


def _filled(path: str, name: str) -> str:
    for part in ("{name}", "{kind}", "{attribute}"):
        path = path.replace(part, quote(name, safe="%;'~@") if part == "{name}" else "query")
    return path


def _json(**values: str) -> bytes:
    return json.dumps(values).encode()


# -- what must not happen -------------------------------------------------------------------


def broken(attacked: Target, attack: Attack) -> str:
    """What has gone wrong with an attack; nothing if it was met well."""
    began = time.monotonic()
    try:
        answer = attacked.send(attack.raw, PAUSE_SECONDS if attack.may_close else SECONDS)
    except OSError as error:
        return f"no answer: {error!r}"
    if answer.status == 0:
        return "" if attack.may_close else "no answer"
    if answer.status not in attack.statuses:
        return f"status {answer.status}: {answer.text[-300:]!r}"
    if SECRET.encode() in answer.text or b"Traceback" in answer.text:
        return f"a leak: {answer.text[-300:]!r}"
    seconds = time.monotonic() - began
    return f"{seconds:.1f} seconds" if seconds > SECONDS else ""


def wrong_afterwards(attacked: Target) -> list[str]:
    """What is not as it was before: a server that is well answers exactly, and says nothing."""
    if attacked.process.poll() is not None:
        return [f"the server has ended: {attacked.process.returncode}"]
    attacked.ask("POST", "/api/streams/T/tuples", [{"t": t, "a": t} for t in range(1, 6)])
    attacked.ask("POST", "/api/streams/T/advance", {"time": 10})
    results = request(
        "GET", "/api/queries/right/results?from=oldest&follow=false", token=attacked.tokens["read"]
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = attacked.send(results).text
        rows = [b'"b":%d}' % b in found.replace(b" ", b"") for b in range(1, 8)]
        if rows == [False, False, True, True, True, True, False]:
            break
        time.sleep(0.05)
    names = {each["name"] for each in attacked.ask("GET", "/api/queries")}
    mirror = ET.parse(attacked.plan).getroot()
    attacked.ask("GET", "/api/status")
    logged = attacked.log.read_text(errors="replace")
    checks = {
        f"results are wrong: {found[-300:]!r}": rows[2:6] == [True] * 4,
        f"queries are gone: {names}": {"counts", "big", "right"} <= names,
        "the mirror of the plan is none": mirror.tag == "plan",
        "the log has the secret": SECRET not in logged,
        f"the log has a fault: {logged[-2_000:]}": "Traceback" not in logged,
        f"{attacked.memory_kb():,} KB of memory": attacked.memory_kb() < MOST_MEMORY_KB,
    }
    return [fault for fault, is_well in checks.items() if not is_well]


def attacks_on(attacked: Target, seed: int = 19) -> list[Attack]:
    """All attacks on a server."""
    paths = attacked.ask("GET", "/openapi.json")["paths"]
    return list(Attacks(attacked.tokens, paths, random.Random(seed)).all())


def main() -> int:
    """Makes all attacks; how many were broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=19)
    seed = parser.parse_args().seed
    with target() as attacked:
        made = attacks_on(attacked, seed)
        faults = []
        for attack in made:
            fault = broken(attacked, attack)
            if fault:
                faults.append(f"{attack.name}: {fault}")
                sys.stdout.write(faults[-1] + "\n")
            if attacked.process.poll() is not None:
                break
        faults += wrong_afterwards(attacked)
        memory = attacked.memory_kb() if attacked.process.poll() is None else 0
    sys.stdout.write(f"{len(made)} attacks, {len(faults)} broken, {memory:,} KB\n")
    sys.stdout.writelines(f"  {fault}\n" for fault in faults)
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main())
