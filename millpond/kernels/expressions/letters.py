"""Upper and lower case of any text, as the Unicode 17 of Spark's ICU has them.

Python's own mapping is the same but for letters that came after its Unicode, and for the small
sigma: it has another form at the end of a word, and where words end depends on newer letters too.
"""

from collections.abc import Iterable

_PAIRS = {
    0xA7DC: 0x19B,
    0xA7CB: 0x264,
    0x1C89: 0x1C8A,
    0xA7CC: 0xA7CD,
    0xA7CE: 0xA7CF,
    0xA7D2: 0xA7D3,
    0xA7D4: 0xA7D5,
    0xA7DA: 0xA7DB,
    **{0x10D50 + i: 0x10D70 + i for i in range(22)},
    **{0x16EA0 + i: 0x16EBB + i for i in range(25)},
}
"""Capital letters that Unicode 14 lacks or does not pair, with their small ones."""

_UPPER = {small: capital for capital, small in _PAIRS.items()}


def _all(*ranges: tuple[int, int]) -> Iterable[int]:
    return (code for first, last in ranges for code in range(first, last + 1))


_LETTERS = _all(
    *((0x1C89, 0x1C8A), (0xA7CB, 0xA7CF), (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4), (0xA7DA, 0xA7DC)),
    *((0x10D50, 0x10D65), (0x10D70, 0x10D85), (0x16EA0, 0x16EB8), (0x16EBB, 0x16ED3)),
    (0x1DF25, 0x1DF2A),
)
_MARKS = _all(
    *((0x897, 0x897), (0xECE, 0xECE), (0x1ACF, 0x1ADD), (0x1AE0, 0x1AEB), (0xA7F1, 0xA7F1)),
    *((0x10D4E, 0x10D4E), (0x10D69, 0x10D6D), (0x10D6F, 0x10D6F), (0x10EC5, 0x10EC5)),
    *((0x10EFA, 0x10EFF), (0x11241, 0x11241), (0x113BB, 0x113C0), (0x113CE, 0x113CE)),
    *((0x113D0, 0x113D0), (0x113D2, 0x113D2), (0x113E1, 0x113E2), (0x11B60, 0x11B60)),
    *((0x11B62, 0x11B64), (0x11B66, 0x11B66), (0x11DD9, 0x11DD9), (0x11F00, 0x11F01)),
    *((0x11F36, 0x11F3A), (0x11F40, 0x11F40), (0x11F42, 0x11F42), (0x11F5A, 0x11F5A)),
    *((0x13439, 0x13440), (0x13447, 0x13455), (0x1611E, 0x16129), (0x1612D, 0x1612F)),
    *((0x16D40, 0x16D42), (0x16D6B, 0x16D6C), (0x16FF2, 0x16FF3), (0x1E030, 0x1E06D)),
    *((0x1E08F, 0x1E08F), (0x1E4EB, 0x1E4EF), (0x1E5EE, 0x1E5EF), (0x1E6E3, 0x1E6E3)),
    *((0x1E6E6, 0x1E6E6), (0x1E6EE, 0x1E6EF), (0x1E6F5, 0x1E6F5), (0x1E6FF, 0x1E6FF)),
)
_LIKE = {
    **dict.fromkeys(_LETTERS, "a"),
    **dict.fromkeys(_MARKS, "\u0301"),
    0x295: "1",
    0x1171E: "1",
}
"""Characters that Unicode 14 takes for another kind, each with one of its kind: a letter, a mark
that belongs to the letter before it, or neither."""

_SIGMA, _SMALL = "Σ", "σς"


def upper(text: str) -> str:
    """The text in upper case."""
    return text.translate(_UPPER).upper()


def lower(text: str) -> str:
    """The text in lower case."""
    small = text.translate(_PAIRS).lower()
    if _SIGMA not in text:
        return small
    forms = iter([letter for letter in text.translate(_LIKE).lower() if letter in _SMALL])
    return "".join(next(forms) if letter in _SMALL else letter for letter in small)
