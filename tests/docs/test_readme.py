"""What a newcomer sees first: ten lines, and a picture that moves."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from benchmarks.pictures import FRAME_SECONDS, MOST_BYTES, joined

ROOT = Path(__file__).parents[2]


def test_ten_lines_say_what_it_is_for_and_why_not_something_else() -> None:
    first = "\n".join((ROOT / "README.md").read_text().splitlines()[:10])
    for word in ("**For**", "**For whom:**", "Flink", "Materialize", "RisingWave", "better for"):
        assert word in first


def test_the_picture_moves_and_is_small() -> None:
    file = ROOT / "docs" / "page_burst.gif"
    assert f"]({file.relative_to(ROOT)})" in (ROOT / "README.md").read_text()
    assert file.stat().st_size < MOST_BYTES
    with Image.open(file) as picture:
        assert picture.n_frames >= 20


def test_frames_that_show_nothing_new_last_longer() -> None:
    white, black = (Image.new("RGB", (4, 4), colour) for colour in ("white", "black"))
    kept, lasting = joined([white, white.copy(), black])
    assert kept == [white, black]
    assert lasting == [round(2_000 * FRAME_SECONDS), round(1_000 * (FRAME_SECONDS + 2))]
