"""CQL types as Spark types."""

import pyarrow as pa
from pyspark.sql import types as st

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.schema import Type


class _SparkTypes(dict[Type, st.DataType]):
    """The Spark type of each type; those with parameters are made when they are asked for."""

    def __missing__(self, type_: Type) -> st.DataType:
        if type_.is_nested:
            return st.BinaryType()
        if not type_.is_decimal:
            raise KeyError(type_)
        return st.DecimalType(type_.precision, type_.scale)


SPARK = _SparkTypes(
    {
        Type.BOOLEAN: st.BooleanType(),
        Type.INT: st.IntegerType(),
        Type.BIGINT: st.LongType(),
        Type.DOUBLE: st.DoubleType(),
        Type.STRING: st.StringType(),
        Type.BINARY: st.BinaryType(),
        Type.DATE: st.DateType(),
        Type.TIMESTAMP: st.TimestampNTZType(),
    }
)


def spark_schema(schema: pa.Schema) -> st.StructType:
    """The Spark schema that reads pages of an Arrow schema."""
    return st.StructType([st.StructField(f.name, spark_type(f.type)) for f in schema])


def spark_type(type_: pa.DataType) -> st.DataType:
    """The Spark type of an Arrow type that pages or kernel states may have."""
    if pa.types.is_list(type_):
        return st.ArrayType(spark_type(type_.value_type))
    if pa.types.is_map(type_):
        return st.MapType(spark_type(type_.key_type), spark_type(type_.item_type))
    if pa.types.is_struct(type_):
        return st.StructType([st.StructField(f.name, spark_type(f.type)) for f in type_])
    if pa.types.is_decimal(type_):
        return st.DecimalType(type_.precision, type_.scale)
    for cql, spark in SPARK.items():
        if ARROW_TYPES[cql] == type_:
            return spark
    raise TypeError(f"no Spark type for {type_}")
