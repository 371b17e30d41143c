"""Text, counted in characters (code points), as Spark counts it, and BINARYs, counted in bytes.

Where the other arguments are constant, Arrow does the work; otherwise Python does, row by row.
"""

import hashlib
import zlib
from base64 import b64encode
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.base64_texts import of_base64_text
from millpond.kernels.expressions import letters
from millpond.kernels.expressions.faults import Fault, fault_where, first_of
from millpond.kernels.expressions.operand import Operand, Text, Value, of_array
from millpond.kernels.expressions.rows import by_row, bytes_of, size, text_of
from millpond.kernels.expressions.strict import met, valid
from millpond.schema import Type

_FAR = 2**31 - 1
Cut = TypeVar("Cut", str, bytes)


def upper(text: Text) -> Text:
    """In upper case."""
    return _mapped(text, pc.ascii_upper, letters.upper)


def lower(text: Text) -> Text:
    """In lower case."""
    return _mapped(text, pc.ascii_lower, letters.lower)


def _mapped(
    text: Text, of_ascii: Callable[[pa.Array], pa.Array], of_any: Callable[[str], str]
) -> Text:
    if is_ascii(text.data):
        return Text(of_ascii(text.data), text.faults)
    return text_of(by_row(of_any, text), text)


def is_ascii(text: pa.Array) -> bool:
    """Whether every character is an ASCII character."""
    return pc.all(pc.string_is_ascii(text)).as_py() is not False


def length(text: Text) -> Operand:
    """The number of characters, of a BINARY of its bytes."""
    return octet_length(text) if is_binary(text) else _numbers(pc.utf8_length(text.data), text)


def octet_length(text: Text) -> Operand:
    """The number of bytes."""
    return _numbers(pc.binary_length(text.data), text)


def is_binary(text: Text) -> bool:
    """Whether the values are BINARYs."""
    return bool(pa.types.is_binary(text.data.type))


def _numbers(array: pa.Array, *arguments: Value) -> Operand:
    answer = of_array(array, Type.INT)
    return Operand(answer.data, answer.valid, met(*arguments))


def _truths(array: pa.Array, *arguments: Value) -> Operand:
    answer = of_array(array, Type.BOOLEAN)
    return Operand(answer.data, answer.valid, met(*arguments))


def trim(text: Text) -> Text:
    """Without spaces at both ends."""
    return Text(pc.utf8_trim(text.data, characters=" "), text.faults)


def trim_left(text: Text) -> Text:
    """Without spaces at the beginning."""
    return Text(pc.utf8_ltrim(text.data, characters=" "), text.faults)


def trim_right(text: Text) -> Text:
    """Without spaces at the end."""
    return Text(pc.utf8_rtrim(text.data, characters=" "), text.faults)


def reverse(text: Text) -> Text:
    """The characters in reverse order."""
    return Text(pc.utf8_reverse(text.data), text.faults)


def md5(text: Text) -> Text:
    """The MD5 of its bytes, in hexadecimal digits."""
    return _digested(text, "md5")


def sha1(text: Text) -> Text:
    """The SHA-1 of its bytes, in hexadecimal digits."""
    return _digested(text, "sha1")


def sha256(text: Text) -> Text:
    """The SHA-256 of its bytes, in hexadecimal digits."""
    return _digested(text, "sha256")


def sha512(text: Text) -> Text:
    """The SHA-512 of its bytes, in hexadecimal digits."""
    return _digested(text, "sha512")


def crc32(text: Text) -> Operand:
    """The CRC-32 of its bytes."""
    found = pa.array(by_row(zlib.crc32, _as_bytes(text)), pa.int64())
    answer = of_array(found, Type.BIGINT)
    return Operand(answer.data, answer.valid, text.faults)


def hexadecimal(text: Text) -> Text:
    """Its bytes, in hexadecimal digits."""
    return text_of(by_row(lambda one: one.hex().upper(), _as_bytes(text)), text)


def of_hexadecimal(text: Text) -> Text:
    """The bytes of hexadecimal digits; an odd number of them begins with a byte of one digit."""
    return bytes_of(by_row(_of_digits, text), text)


def _of_digits(text: str) -> bytes | None:
    is_number = text.isascii() and (text.isalnum() or not text)
    try:
        return bytes.fromhex("0" * (len(text) % 2) + text) if is_number else None
    except ValueError:
        return None


def base64_text(text: Text) -> Text:
    """Its bytes in base64."""
    return text_of(by_row(lambda one: b64encode(one).decode(), _as_bytes(text)), text)


def of_base64(text: Text) -> Text:
    """The bytes of a text in base64."""
    return bytes_of(by_row(of_base64_text, text), text)


def _as_bytes(text: Text) -> Text:
    """Texts as their UTF-8; BINARYs as they are."""
    return text if is_binary(text) else Text(text.data.cast(pa.binary()), text.faults)


def _digested(text: Text, name: str) -> Text:
    def digest(one: bytes) -> str:
        return hashlib.new(name, one, usedforsecurity=False).hexdigest()

    return text_of(by_row(digest, _as_bytes(text)), text)


def concat(*texts: Text) -> Text:
    """The texts joined."""
    rows = size(texts)
    parts = [text.data if len(text.data) == rows else text.data[0] for text in texts]
    empty = b"" if is_binary(texts[0]) else ""
    joined = pc.binary_join_element_wise(*parts, empty, null_handling="emit_null")
    return Text(joined, met(*texts))


def substring(text: Text, start: Operand, count: Operand | None = None) -> Text:
    """From a position, from 1 or negative from the end, so many characters, or bytes."""
    arguments: list[Value] = [text, start] if count is None else [text, start, count]
    if is_binary(text):
        return bytes_of(by_row(_substring, *arguments), *arguments)
    if all(_is_constant(number) for number in arguments[1:]) and start.data[0] >= 0:
        first = max(int(start.data[0]) - 1, 0)
        last = _FAR if count is None else min(first + max(int(count.data[0]), 0), _FAR)
        cut = pc.utf8_slice_codeunits(text.data, first, last)
        return Text(cut, met(*arguments))
    return text_of(by_row(_substring, *arguments), *arguments)


def _is_constant(number: Value) -> bool:
    return len(number.data) == 1 and number.valid is None


def _substring(text: Cut, start: int, count: int = _FAR) -> Cut:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    return text[max(first, 0) : max(first + count, 0)]


def left(text: Text, count: Operand) -> Text:
    """The first so many characters."""
    return substring(text, Operand(np.ones(1, np.int32)), count)


def right(text: Text, count: Operand) -> Text:
    """The last so many characters."""
    cut = by_row(lambda value, many: value[-many:] if many > 0 else "", text, count)
    return text_of(cut, text, count)


def replace(text: Text, old: Text, new: Text) -> Text:
    """Each occurrence replaced; an empty text occurs nowhere."""
    if _is_constant(old) and _is_constant(new) and old.constant:
        replaced = pc.replace_substring(text.data, old.constant, new.constant)
        return Text(replaced, met(text, old, new))
    answers = by_row(lambda t, a, b: t.replace(a, b) if a else t, text, old, new)
    return text_of(answers, text, old, new)


def position(text: Text, part: Text) -> Operand:
    """Where the part begins, from 1; 0 if nowhere."""
    if _is_constant(part) and is_ascii(text.data):
        found = pc.add(pc.find_substring(text.data, part.constant), 1)
        return _numbers(found, text, part)
    answers = by_row(lambda value, within: value.find(within) + 1, text, part)
    return _numbers(pa.array(answers, pa.int32()), text, part)


def starts_with(text: Text, part: Text) -> Operand:
    """Whether the text begins with the part."""
    return _search(text, part, pc.starts_with, str.startswith)


def ends_with(text: Text, part: Text) -> Operand:
    """Whether the text ends with the part."""
    return _search(text, part, pc.ends_with, str.endswith)


def contains(text: Text, part: Text) -> Operand:
    """Whether the text contains the part."""
    return _search(text, part, pc.match_substring, str.__contains__)


def _search(
    text: Text, part: Text, of_constant: Callable[..., pa.Array], of_row: Callable[[str, str], bool]
) -> Operand:
    if _is_constant(part):
        return _truths(of_constant(text.data, part.constant), text, part)
    return _truths(pa.array(by_row(of_row, text, part), pa.bool_()), text, part)


def split_part(text: Text, separator: Text, number: Operand) -> Text:
    """The part of this number between separators; there is no part 0."""
    answers = by_row(_part, text, separator, number)
    fails = number.data == 0
    given = valid(text, separator, number)
    own = fault_where(fails if given is None else fails & given, Fault.INVALID_INDEX_OF_ZERO)
    made = text_of(answers, text, separator, number)
    return Text(made.data, first_of(made.faults, own))


def _part(text: str, separator: str, number: int) -> str:
    parts = text.split(separator) if separator else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""
