"""CQL types as Arrow and Spark types."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as st

from millpond.schema import Type

ARROW: dict[Type, pa.DataType] = {
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int32(),
    Type.BIGINT: pa.int64(),
    Type.DOUBLE: pa.float64(),
    Type.STRING: pa.string(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
}

SPARK: dict[Type, st.DataType] = {
    Type.BOOLEAN: st.BooleanType(),
    Type.INT: st.IntegerType(),
    Type.BIGINT: st.LongType(),
    Type.DOUBLE: st.DoubleType(),
    Type.STRING: st.StringType(),
    Type.DATE: st.DateType(),
    Type.TIMESTAMP: st.TimestampNTZType(),
}


def spark_schema(schema: pa.Schema) -> st.StructType:
    """The Spark schema that reads pages of an Arrow schema."""
    return st.StructType([st.StructField(f.name, spark_type(f.type)) for f in schema])


def spark_type(type_: pa.DataType) -> st.DataType:
    """The Spark type of an Arrow type that pages or kernel states may have."""
    if pa.types.is_list(type_):
        return st.ArrayType(spark_type(type_.value_type))
    for cql, arrow in ARROW.items():
        if arrow == type_:
            return SPARK[cql]
    raise TypeError(f"no Spark type for {type_}")
