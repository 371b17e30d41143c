"""What must not be possible from outside: each of these is refused, and nothing has happened."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from millpond.errors import InputError
from millpond.server.limits import Limits
from millpond.server.serve import ServeOptions, check_options
from millpond.server.tokens import new_token, read_tokens
from tests.patience import PATIENCE_SECONDS
from tests.server.serving import SCRIPT, Running, plain_client, running


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.csv").write_text("t,a\n1,1\n")
    root = tmp_path_factory.mktemp("root")
    (root / "fine.csv").write_text("t,a\n1,1\n")
    (root / "link.csv").symlink_to(outside / "secret.csv")
    (root / "way").symlink_to(outside)
    (root / "many").mkdir()
    (root / "many" / "link.csv").symlink_to(outside / "secret.csv")
    return root


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Running]:
    limits = Limits(body_bytes=50_000, text_bytes=40_000, text_characters=20_000, queries=50)
    with running(SCRIPT, limits=limits, roots=(root,)) as made:
        yield made


def is_untouched(server: Running) -> bool:
    names = {each["name"] for each in server.http.get("/api/queries").json()}
    return names == {"big", "counts"} and server.http.get("/ping").text == "pong"


def nested(depth: int) -> str:
    return f"SELECT {'(' * depth}a{')' * depth} AS x FROM S"


STATEMENTS = {
    "spark sql": "SELECT * FROM text.`/etc/passwd`",
    "shell by transform": "SELECT TRANSFORM (a) USING 'id' AS (x) FROM S",
    "java by reflect": "SELECT reflect('java.lang.System', 'exit', 1) AS x FROM S",
    "java method": "SELECT java_method('java.lang.Runtime', 'getRuntime') AS x FROM S",
    "unknown function": "SELECT system('id') AS x FROM S",
    "python eval": "SELECT eval('1') AS x FROM S",
    "second statement hidden": "SELECT a FROM S; COPY S TO PROGRAM 'id'",
    "load extension": "LOAD 'x'",
    "add jar": "ADD JAR '/tmp/x.jar'",
    "create function": "CREATE FUNCTION f AS 'x'",
    "attach": "ATTACH '/tmp/x' AS y",
    "pragma": "PRAGMA table_info(S)",
    "information schema": "SELECT * FROM information_schema.tables",
    "comment out": "SELECT a FROM S WHERE a = 1 OR /* */ nothing = 1 --",
    "quoted name": 'SELECT * FROM "S; DROP QUERY big"',
    "absolute file": "CREATE STREAM X (t BIGINT, a INT) TIMESTAMP BY t FROM csv('/etc/passwd')",
    "upward file": "CREATE STREAM X (t BIGINT, a INT) TIMESTAMP BY t FROM csv('../secret.csv')",
    "upward inside": "CREATE STREAM X (t BIGINT, a INT) FROM csv('many/../../secret.csv')",
    "link": "CREATE STREAM X (t BIGINT, a INT) TIMESTAMP BY t FROM csv('link.csv')",
    "link on the way": "CREATE STREAM X (t BIGINT, a INT) FROM csv('way/secret.csv')",
    "directory with link": "CREATE STREAM X (t BIGINT, a INT) FROM csv('many')",
    "pattern": "CREATE STREAM X (t BIGINT, a INT) FROM csv('*.csv')",
    "root itself": "CREATE STREAM X (t BIGINT, a INT) FROM csv('.')",
    "home": "CREATE STREAM X (t BIGINT, a INT) FROM csv('~/.ssh/id_rsa')",
    "device": "CREATE STREAM X (t BIGINT, a INT) FROM csv('/dev/zero')",
    "proc": "CREATE STREAM X (t BIGINT, a INT) FROM json('/proc/self/environ')",
    "file by option": "CREATE STREAM X (t BIGINT, a INT) FROM csv(file = '/etc/passwd')",
    "parquet": "CREATE STREAM X (t BIGINT, a INT) FROM parquet('/etc')",
    "standard input": "CREATE STREAM X (t BIGINT, a INT) FROM stdin()",
    "standard input as file": "CREATE STREAM X (t BIGINT, a INT) FROM csv('-')",
    "trace file": "CREATE STREAM X (t BIGINT, a INT) FROM burst('trace', file = '/etc/passwd')",
    "file by a secret": "CREATE STREAM X (a INT) FROM csv('env:MILLPOND_SECRET_FILE')",
    "variable": "CREATE STREAM X (a INT) FROM rate('env:PATH')",
    "remote file": "CREATE STREAM X (t BIGINT, a INT) FROM csv('http://example.org/x')",
    "sink outside": "CREATE QUERY x AS SELECT a FROM S INTO csv('/tmp/millpond_attack.csv')",
    "sink over a link": "CREATE QUERY x AS SELECT a FROM S INTO csv('link.csv')",
    "sink upward": "CREATE QUERY x AS SELECT a FROM S INTO json('../x.jsonl')",
    "another store": "SET store = '/tmp/elsewhere'",
    "another master": "SET spark_master = 'spark://evil:7077'",
    "driver host": "SET driver_host = 'evil'",
    "driver memory": "SET driver_memory = '999g'",
    "many joins": "SELECT S1.a FROM S S1 [NOW], "
    + ", ".join(f"S S{n} [NOW]" for n in range(2, 40)),
    "deep parentheses": nested(2_000),
    "deep case": "SELECT " + "CASE WHEN a > 0 THEN " * 300 + "1" + " END" * 300 + " AS x FROM S",
    "deep subqueries": "SELECT a FROM (" * 200 + "SELECT a FROM S" + ") t" * 200,
    "long text": "SELECT a FROM S WHERE " + " OR ".join(["a = 1"] * 4_000),
    "many statements": "SHOW ALL;" * 1_500,
    "null byte": "SELECT a FROM S WHERE a = '\0'",
    "unclosed": "SELECT 'a FROM S",
    "reserved word as name": "CREATE QUERY select AS SELECT a FROM S",
    "twice the name": "CREATE QUERY big AS SELECT a FROM S",
    "drop what is used": "DROP STREAM S",
}


@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_a_statement_is_refused(server: Running, text: str) -> None:
    answer = server.http.post("/api/execute", json={"text": text})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]
    assert is_untouched(server)
    assert not Path("/tmp/millpond_attack.csv").exists()


BOMB = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
DOCUMENTS = {
    "external entity": '<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><plan>&x;</plan>',
    "parameter entity": '<!DOCTYPE p [<!ENTITY % x SYSTEM "http://evil/">%x;]><plan/>',
    "billion laughs": f'<!DOCTYPE p [<!ENTITY a0 "x">{BOMB}]><plan>&a9;</plan>',
    "external DTD": '<!DOCTYPE plan SYSTEM "http://evil/x.dtd"><plan/>',
    "inclusion": '<plan xmlns:xi="http://www.w3.org/2001/XInclude">'
    '<xi:include href="file:///etc/passwd" parse="text"/></plan>',
    "deep": "<plan>" + "<query>" * 500 + "</query>" * 500 + "</plan>",
    "not closed": "<plan><query></plan>",
    "no plan": "<html/>",
    "file in a tree": '<plan><stream name="X"><cql>CREATE STREAM X (a INT) '
    "FROM csv('/etc/passwd')</cql></stream></plan>",
    "statement in a name": '<plan><query name="x&quot; AS SELECT 1; DROP QUERY big; --">'
    "<cql>SELECT nothing FROM S</cql></query></plan>",
    "statement in a condition": '<plan><query name="x"><select condition="a > 1; DROP QUERY big">'
    '<stream name="S"/></select></query></plan>',
    "setting of the machine": '<plan><set name="store" value="/tmp/elsewhere"/></plan>',
    "no text at all": "",
    "binary": "\x00\x01\x02",
    "processing instruction only": '<?xml-stylesheet href="file:///etc/passwd"?>',
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_a_document_is_refused_with_a_reason(server: Running, document: str) -> None:
    answer = server.http.put("/api/plan", content=document.encode())
    assert 400 <= answer.status_code < 500
    assert "root:" not in answer.text
    assert answer.json()["error"]
    assert is_untouched(server)


HEADERS = {
    "another host": ({"host": "evil.example"}, 421),
    "rebound host": ({"host": "127.0.0.1.evil.example"}, 421),
    "no name": ({"host": ""}, 421),
    "another origin": ({"origin": "http://evil.example"}, 403),
    "null origin": ({"origin": "null"}, 403),
    "half an origin": ({"origin": "http://[::1"}, 403),
    "other port": ({"origin": "http://127.0.0.1:1"}, 403),
    "cross site": ({"sec-fetch-site": "cross-site"}, 403),
    "compressed": ({"content-encoding": "gzip"}, 415),
    "odd type": ({"content-type": "application/x-java-serialized-object"}, 415),
    "long key": ({"idempotency-key": "x" * 300}, 400),
}


@pytest.mark.parametrize(("headers", "status"), HEADERS.values(), ids=HEADERS.keys())
def test_a_request_with_such_headers_is_refused(
    server: Running, headers: dict[str, str], status: int
) -> None:
    body = '{"t":1,"a":1}'
    answer = server.http.post("/api/streams/S/tuples", content=body, headers=headers)
    assert answer.status_code == status
    assert server.service.engine.inputs.streams["s"].arrived == 0


PATHS = (
    "/static/../app.py",
    "/static/%2e%2e/app.py",
    "/static/..%2fapp.py",
    "/static/....//app.py",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/..%5capp.py",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/api/queries/..%2f..%2fetc",
    "/static/%00",
    "/api/" + "x" * 5_000,
)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:30])
def test_a_path_leads_nowhere(server: Running, path: str) -> None:
    assert raw(server, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n") in (
        400,
        404,
        405,
        414,
        421,
    )


def raw(server: Running, request: str) -> int:
    """The status of a request sent as it is."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(request.encode("latin-1"))
        answer = connection.recv(65_536).decode("latin-1")
    return int(answer.split()[1])


def test_requests_that_smuggle_are_refused(server: Running) -> None:
    post = "POST /api/execute HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for headers in (
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n",
        "Host: evil\r\nContent-Length: 0\r\n",
        "X: " + "a" * 70_000 + "\r\n",
    ):
        status = raw(server, post + headers + "Connection: close\r\n\r\n")
        assert 400 <= status < 500 or status == 501, headers[:60]
    assert is_untouched(server)


def test_bodies_beyond_the_limits_are_refused(server: Running) -> None:
    http = server.http
    assert http.post("/api/streams/S/tuples", content=b"x" * 60_000).status_code == 413
    assert http.post("/api/execute", json={"text": "x" * 50_000}).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1_000

    try:
        answer = http.post("/api/streams/S/tuples", content=pieces())
        assert answer.status_code == 413
    except httpx.HTTPError:
        pass  # closed while it was being sent
    deep = "[" * 20_000 + "]" * 20_000
    headers = {"content-type": "application/json"}
    assert http.post("/api/streams/S/tuples", content=deep, headers=headers).status_code == 400
    answer = http.post("/api/execute", content='{"text":' + "[" * 10_000, headers=headers)
    assert answer.status_code in (400, 422)
    assert is_untouched(server)


@pytest.mark.parametrize(
    "text", ["SELECT a FROM S; DROP QUERY big", "SELECT a FROM S;; SHOW ALL", ";", "", "-- none"]
)
def test_a_query_is_one_statement(server: Running, text: str) -> None:
    answer = server.http.post("/api/queries", json={"name": "more", "text": text})
    assert answer.status_code == 400
    assert answer.json()["error"] == "text is one SELECT, and nothing behind it"
    assert is_untouched(server)


def test_a_query_may_end_with_a_semicolon_and_a_comment(server: Running) -> None:
    text = "SELECT a FROM S; -- as in a script;"
    made = server.http.post("/api/queries", json={"name": "more", "text": text})
    assert made.status_code == 201, made.text
    server.http.delete("/api/queries/more")


def test_no_more_queries_than_there_may_be(server: Running) -> None:
    text = ";".join(f"CREATE QUERY many{n} AS SELECT a FROM S" for n in range(60))
    assert server.http.post("/api/execute", json={"text": text}).status_code == 429
    assert is_untouched(server)


def test_every_answer_forbids_what_a_page_needs_not(server: Running) -> None:
    for path in ("/", "/ping", "/api/status", "/static/app.js", "/nothing"):
        headers = server.http.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
    assert "access-control-allow-origin" not in server.http.options("/api/status").headers


def test_the_page_loads_nothing_from_elsewhere() -> None:
    static = Path(__file__).parents[2] / "millpond/server/static"
    for file in [*static.glob("*.html"), *static.glob("*.js"), *static.glob("*.css")]:
        text = file.read_text()
        assert "innerHTML" not in text
        assert "eval(" not in text
        assert "http://" not in text
        assert "https://" not in text
    assert len(list((static / "vendor").glob("*.LICENSE"))) == 6


def test_files_within_the_root_are_allowed(server: Running, root: Path) -> None:
    text = "CREATE STREAM F (t BIGINT, a INT) TIMESTAMP BY t FROM csv('%s')"
    answer = server.http.post("/api/execute", json={"text": text % (root / "fine.csv")})
    assert answer.status_code == 200, answer.text
    server.http.delete("/api/streams/F")


# -- tokens --------------------------------------------------------------------------------


@pytest.fixture
def token_file(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    made = {role: new_token(role) for role in ("read", "write", "admin")}
    file = tmp_path / "tokens"
    file.write_text("\n".join(line for _, line in made.values()))
    file.chmod(0o600)
    return file, {role: token for role, (token, _) in made.items()}


def test_tokens_have_roles(token_file: tuple[Path, dict[str, str]]) -> None:
    file, tokens = token_file
    assert not any(token in file.read_text() for token in tokens.values())
    with running(tokens=file, token=tokens["admin"]) as server:

        def status(method: str, path: str, token: str | None, **more: object) -> int:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            with plain_client(server.url, headers) as http:
                return http.request(method, path, **more).status_code  # type: ignore[arg-type]

        text = {"text": "SELECT a FROM S"}
        assert status("GET", "/ping", None) == 200
        assert status("GET", "/api/queries", None) == 401
        assert status("GET", "/metrics", None) == 401
        assert status("GET", "/openapi.json", None) == 401
        assert status("GET", "/api/queries", "wrong") == 401
        assert status("GET", "/api/queries", tokens["read"] + "x") == 401
        assert status("GET", "/api/queries", tokens["read"]) == 200
        assert status("POST", "/api/check", tokens["read"], json=text) == 200
        assert status("POST", "/api/execute", tokens["read"], json=text) == 403
        assert status("DELETE", "/api/queries/big", tokens["read"]) == 403
        assert status("PUT", "/api/plan", tokens["write"], content="<plan/>") == 403
        assert status("PUT", "/api/plan", tokens["admin"], content="<plan/>") == 200
        assert status("DELETE", "/api/queries/big", tokens["write"]) == 200
        with plain_client(server.url, {"authorization": "Basic eA=="}) as basic:
            assert basic.get("/api/queries").status_code == 401


def test_who_asks_too_often_is_refused() -> None:
    with running(limits=Limits(requests_per_second=1, request_burst=20)) as server:
        statuses = [server.http.get("/api/status").status_code for _ in range(30)]
        assert 429 in statuses
        assert server.http.get("/ping").status_code == 200


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (ServeOptions(host="0.0.0.0"), "needs --tokens"),
        (ServeOptions(host="::"), "needs --tokens"),
        (ServeOptions(host="192.0.2.1"), "needs --tokens"),
        (ServeOptions(certificate=Path("x")), "go together"),
    ],
)
def test_a_server_that_others_reach_needs_tokens(options: ServeOptions, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_options(options)


def test_tokens_do_not_go_over_a_network_in_the_clear(
    token_file: tuple[Path, dict[str, str]],
) -> None:
    file, _ = token_file
    with pytest.raises(InputError, match="in the clear"):
        check_options(ServeOptions(host="0.0.0.0", tokens=file))
    assert check_options(ServeOptions(host="0.0.0.0", tokens=file, insecure=True)).are_needed
    file.chmod(0o644)
    with pytest.raises(InputError, match="others can read"):
        read_tokens(file)
