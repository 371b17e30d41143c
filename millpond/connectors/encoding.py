"""Text in files is UTF-8; what is not is refused, with a word on what it may be."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE

from millpond.errors import InputError


def is_utf8(text: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def refuse_utf16(file: str, beginning: bytes) -> None:
    """Refuses a file that begins as UTF-16 does, before each of its lines looks odd."""
    if beginning.startswith((BOM_UTF16_BE, BOM_UTF16_LE)):
        raise InputError(f"{file}, line 1: this is UTF-16, not UTF-8 (see iconv)")


def not_utf8(place: str, text: bytes) -> InputError:
    """The refusal of a piece of text.

    >>> str(not_utf8("x.csv, line 3, column a", b"caf\\xe9"))
    "x.csv, line 3, column a: b'caf\\\\xe9' is not UTF-8; as Latin-1 it is 'café' (see iconv)"
    """
    shown = text if len(text) <= _SHOWN_BYTES else text[:_SHOWN_BYTES]
    return InputError(
        f"{place}: {shown!r} is not UTF-8; as Latin-1 it is {shown.decode('latin-1')!r} (see iconv)"
    )


_SHOWN_BYTES = 40
