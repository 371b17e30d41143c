"""Draws an experiment's tables into PNG and SVG files, without a display."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from millpond.lab.experiment import Experiment, Tables

STYLE: Any = {
    "figure.figsize": (8.0, 4.8),
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "millpond",
    "font.size": 10,
}


def draw(experiment: Experiment, tables: Tables, folder: Path) -> list[Path]:
    """Write `<name>.png` and `<name>.svg`; the same tables give the same bytes."""
    with mpl.rc_context(STYLE):
        figure = Figure(layout="constrained")
        experiment.plot(tables, figure)
        figure.suptitle(f"{experiment.paper}: {experiment.title}")
        paths = [folder / f"{experiment.name}.{form}" for form in ("png", "svg")]
        figure.savefig(paths[0], dpi=140, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
