"""Whether something is of pandas, which takes as long to import as all else together.

Nothing is before somebody has imported it.
"""

import sys
from datetime import datetime
from typing import Any


def is_frame(data: Any) -> bool:
    """Whether it is a data frame."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def is_absent(value: Any) -> bool:
    """Whether it is what pandas puts where there is no value."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NaT or value is pandas.NA)


def is_moment(value: Any) -> bool:
    """Whether it is a moment of pandas."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.Timestamp)


def dense(column: Any) -> Any:
    """A column that holds each value, also where it was sparse."""
    import pandas as pd

    return column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column


def python_moment(value: Any) -> datetime:
    """A moment of pandas or NumPy as Python's."""
    import pandas as pd

    moment: datetime = pd.Timestamp(value).to_pydatetime(warn=False)
    return moment
