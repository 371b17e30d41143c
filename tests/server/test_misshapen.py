"""Requests of the wrong form are refused in words that name the field and the way out."""

from __future__ import annotations

import pytest

from tests.server.serving import Running

pytestmark = pytest.mark.slow


def test_what_is_not_known_or_will_not_do_is_named(server: Running) -> None:
    def refusal(method: str, path: str, body: object = None) -> str:
        answer = server.http.request(method, path, json=body)
        assert answer.status_code in (400, 422), answer.text
        return str(answer.json()["error"])

    new = {"name": "q", "text": "SELECT a FROM S"}
    said = refusal("POST", "/api/queries", new | {"wieght": 2})
    assert said.startswith('no field "wieght"; did you mean "weight"? known: active, name,')
    said = refusal("POST", "/api/queries", new | {"weight": 0})
    assert said == "weight: 0 will not do; it must be above 0"
    said = refusal("POST", "/api/queries", new | {"name": "two words"})
    assert said.startswith("name: 'two words' will not do; it must be a letter or _, then")
    assert refusal("POST", "/api/queries", {"name": "q"}) == "text is missing"
    assert refusal("PATCH", "/api/queries/big", {"activ": True}).startswith('no field "activ"')
    assert refusal("POST", "/api/execute", {"txt": ""}).startswith('no field "txt"')
    assert refusal("POST", "/api/execute", []) == "the body is no JSON object"
    said = refusal("GET", "/api/queries?limt=3")
    known = "descending, find, limit, offset, sort, state"
    assert said == f'no parameter "limt"; did you mean "limit"? known: {known}'
    said = refusal("GET", "/api/queries?limit=0")
    assert said == "limit: '0' will not do; it must be 1 or more"
    assert server.http.get("/api/queries/q").status_code == 404


def test_late_rows_are_answered_as_late_and_times_are_those_of_files(server: Running) -> None:
    server.service.engine.execute("CREATE STREAM T (at TIMESTAMP, a INT) TIMESTAMP BY at")
    path, csv = "/api/streams/T/tuples", {"content-type": "text/csv"}
    body = "A,At\n1,2026-01-01T02:00:00+02:00\n2,2026-01-01T00:00:09Z\n"
    answer = server.http.post(path, content=body, headers=csv)
    assert answer.json() == {"rows": 2, "late": 0, "repeated": False}
    again = [{"at": "2026-01-01 00:00:01", "a": 3}, {"at": "2026-01-01 00:00:10", "a": 4}]
    keyed = {"idempotency-key": "k"}
    assert server.http.post(path, json=again, headers=keyed).json()["late"] == 1
    assert server.http.post(path, json=again, headers=keyed).json() == {
        "rows": 2,
        "late": 0,
        "repeated": True,
    }
    wrong = server.http.post(path, content='at,a\n2026-01-01,1\n"x\ny",2\n', headers=csv)
    assert wrong.status_code == 400
    assert wrong.json()["error"].startswith("CSV, line 4, column at: 'x\\ny' is not a TIMESTAMP")
    wrong = server.http.post(path, content="at,b\n2026-01-01,1\n", headers=csv)
    assert wrong.json()["error"] == "CSV, line 1: column b is not declared; known: a, at"
    assert server.http.post(path, content="at,a\n", headers=csv).json()["rows"] == 0


def test_keys_of_rows_are_those_of_files_and_what_is_not_declared_is_named(server: Running) -> None:
    server.service.engine.execute(
        "CREATE STREAM K (at BIGINT, a INT, b INT) TIMESTAMP BY at;"
        "CREATE QUERY keyed AS SELECT a, b FROM K"
    )
    path, lines = "/api/streams/K/tuples", {"content-type": "application/x-ndjson"}
    body = '{"AT": 1, "b": 2}\n{"at": 2, "A": 3, "b": null}\n[3, 4, 5]\n'
    assert server.http.post(path, content=body, headers=lines).json()["rows"] == 3
    server.service.engine.advance("K", 3)
    server.wait(lambda: server.service.engine.result_count("keyed") == 3)
    rows = server.service.engine.results("keyed", "rows")
    assert [(each["a"], each["b"]) for each in rows] == [(None, 2), (3, None), (4, 5)]
    for wrong in ({"at": 4, "c": 1}, {"at": 4, "a": 1, "c": 2}, {"at": 4, "a": 1, "b": 1, "c": 1}):
        refused = server.http.post(path, json=[wrong])
        assert refused.json()["error"] == "K, row 1: column c is not declared; columns: at, a, b"
    assert "column at" in server.http.post(path, json=[{"a": 1}]).json()["error"]
