"""Progress charts of a query, measured, with their lower envelopes (Chain paper)."""

from itertools import islice
from typing import Any

from millpond.entities.control_tables import plain
from millpond.facade.engine import Engine
from millpond.identities import OperatorId
from millpond.insight.analysis import paths_to
from millpond.scheduling.charts.progress_chart import partition, path_chart

MOST_PATHS = 8


def progress_charts(engine: Engine, query: str) -> list[dict[str, Any]]:
    """For each way from a stream to the output the points, and those of the lower envelope."""
    with engine.held():
        output = engine.queries.output_of(query)
        plan = engine.runtime.picture.elementary()
        charts = []
        for path in islice(paths_to(plan, output.number), MOST_PATHS):
            points = path_chart(plan, path)
            corners = [0, *(segment.last + 1 for segment in partition(points))]
            charts.append(
                {
                    "stream": path.stream,
                    "operators": [OperatorId.numbered(each) for each in path.operators],
                    "points": [[plain(x), plain(y)] for x, y in points],
                    "envelope": [[plain(points[i][0]), plain(points[i][1])] for i in corners],
                }
            )
    return charts
