"""Answers as JSON that every client can read, and tables in them."""

import json
from typing import Any

import pyarrow as pa
from fastapi.responses import JSONResponse

from millpond.connectors.json_values import json_value
from millpond.connectors.python_values import python_rows
from millpond.connectors.sinks import unique_names
from millpond.insight.display import Plan


class Json(JSONResponse):
    """JSON in ASCII: also text that is no Unicode can be quoted back."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def table_json(table: pa.Table) -> dict[str, Any]:
    """A table with the names and types of its columns."""
    table = table.rename_columns(unique_names(table.column_names))
    return {
        "columns": [{"name": f.name, "type": str(f.type)} for f in table.schema],
        "rows": [
            {name: json_value(value) for name, value in row.items()} for row in python_rows(table)
        ],
    }


def answer_json(answer: Any) -> dict[str, Any]:
    """What a statement answers: a table, or a plan."""
    if isinstance(answer, Plan):
        return {"plan": answer.text, "query": answer.query, "stage": answer.stage}
    return {"table": table_json(answer)}
