"""Functions of the user on Spark: as bytes for every process, and as columns."""

import hashlib
import io
import sys
import sysconfig
import types
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as st
from pyspark.sql.pandas.functions import arrow_udf

from millpond.cql.expressions import UserCall
from millpond.errors import StateError
from millpond.functions.aggregate import Aggregate
from millpond.functions.user_function import AGGREGATE, REMOVING, UserFunction
from millpond.kernels.expressions.user_functions import answers
from millpond.schema import Type
from millpond.spark.types import SPARK
from millpond.spark.worker_process import make_ready

_cloudpickle: Any = cloudpickle  # has no types
_arrow_udf: Any = arrow_udf  # has types for plain results only
_CODE = _cloudpickle.CloudPickler.dispatch_table[types.CodeType]


def user_function(
    name: str,
    function: Callable[..., Any] | Aggregate,
    parameters: tuple[Type, ...],
    result: Type,
) -> UserFunction:
    """A function or aggregate with its code, pickled with what it uses of its own module."""
    if not isinstance(function, Aggregate):
        return _pickled(name, function, (function,), parameters, result)
    made = _pickled(name, function.functions, function.functions, parameters, result)
    return replace(made, kind=AGGREGATE if function.remove is None else REMOVING)


def _pickled(
    name: str,
    function: Any,
    called: Sequence[Callable[..., Any] | None],
    parameters: tuple[Type, ...],
    result: Type,
) -> UserFunction:
    """What calls some functions, as bytes."""
    for each in called:
        if not callable(each) and (each is not None or each is function):
            raise StateError(f"function {name}: {each!r} cannot be called")
    try:
        with ExitStack() as stack:
            for module in dict.fromkeys(map(_module_of, called)):
                stack.enter_context(_by_value(module))
            code = _cloudpickle.dumps(function)
            digest = hashlib.blake2b(_without_places(function), digest_size=16).hexdigest()
    except Exception as error:
        raise StateError(
            f"function {name} cannot be sent to Spark's workers: {type(error).__name__}: {error}; "
            "make what it uses inside it"
        ) from error
    return UserFunction(name, parameters, result, digest, code)


def _module_of(function: Callable[..., Any] | None) -> types.ModuleType | None:
    return sys.modules.get(getattr(function, "__module__", None) or "")


@contextmanager
def _by_value(module: types.ModuleType | None) -> Iterator[None]:
    """Has modules of the user's own sent along: workers may not find them by name."""
    own = module is not None and module.__name__ != "__main__" and not _is_installed(module)
    if own:
        _cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        if own:
            _cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: types.ModuleType) -> bool:
    origin = getattr(module, "__file__", None)
    if origin is None:
        return True
    places = {sysconfig.get_path(each) for each in ("stdlib", "purelib", "platlib")}
    return any(Path(origin).is_relative_to(place) for place in places if place)


class _WithoutPlaces(_cloudpickle.CloudPickler):  # type: ignore[misc]
    """Pickles code without the file and lines it stands in: moved, it is the same."""

    dispatch_table: ClassVar[Any] = ChainMap(
        {types.CodeType: lambda code: _CODE(_unplaced(code))},
        _cloudpickle.CloudPickler.dispatch_table,
    )


def _unplaced(code: types.CodeType) -> types.CodeType:
    return code.replace(co_filename="", co_firstlineno=1, co_linetable=b"")


def _without_places(function: Any) -> bytes:
    buffer = io.BytesIO()
    _WithoutPlaces(buffer).dump(function)
    return buffer.getvalue()


# -- as columns ------------------------------------------------------------------------------


def value(call: UserCall, arguments: list[SparkColumn]) -> SparkColumn:
    """The value of a call; what it raises is raised only where the value is needed."""
    answer = _answer(call, arguments)
    error = answer.getField("error")
    return F.when(error.isNotNull(), F.raise_error(error).cast(SPARK[call.type])).otherwise(
        answer.getField("value")
    )


def attempt(call: UserCall, arguments: list[SparkColumn]) -> SparkColumn:
    """The value of a call, NULL where it raises."""
    return _answer(call, arguments).getField("value")


def succeeds(call: UserCall, arguments: list[SparkColumn]) -> SparkColumn:
    """Whether a call has a value."""
    return _answer(call, arguments).getField("error").isNull()


def _answer(call: UserCall, arguments: list[SparkColumn]) -> SparkColumn:
    """A value and the words of an error; equal calls are made once by Spark."""
    function = call.definition

    def called(*columns: pa.Array) -> pa.Array:
        make_ready()
        values, raised = answers(function, columns)
        words = [raised.get(row) for row in range(len(values))] if raised else None
        errors = (
            pa.nulls(len(values), pa.string()) if words is None else pa.array(words, pa.string())
        )
        return pa.StructArray.from_arrays([values, errors], ["value", "error"])

    shape = st.StructType(
        [st.StructField("value", SPARK[call.type]), st.StructField("error", st.StringType())]
    )
    return cast("SparkColumn", _arrow_udf(called, shape)(*arguments))
