"""Files that grow, whatever becomes of them meanwhile: each whole line once."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from millpond.connectors.file_offsets import Offset, RotatedFile, Seen
from millpond.connectors.growing_files import LOOKS_UNTIL_GONE, GrowingFiles
from millpond.connectors.locations import Location
from millpond.errors import InputError


def lines_end(text: bytes) -> int:
    return text.rfind(b"\n") + 1


def one(path: Path) -> GrowingFiles:
    files = GrowingFiles("S", RotatedFile("x", path), lines_end)
    files.begin()
    return files


def all_of(folder: Path) -> GrowingFiles:
    return GrowingFiles("S", Location("d", folder, (".csv",)), lines_end)


def again(files: GrowingFiles) -> GrowingFiles:
    """Another one that goes on where a commit says that this one is."""
    other = GrowingFiles(files._owner, files._location, files._end_of_records)
    said = [each.as_json() for each in files.offsets]
    files.close()
    other.go_on([Offset.of(each) for each in said])
    return other


def came(files: GrowingFiles) -> list[str]:
    """The lines of a look."""
    return [line for each in files.pieces() for line in each.block.content.decode().splitlines()]


def refused(files: GrowingFiles, error: str) -> None:
    """Looks until there is an error; nothing comes meanwhile."""
    for _ in range(LOOKS_UNTIL_GONE - 1):
        assert came(files) == []
    for _ in range(2):
        with pytest.raises(InputError, match=error):
            came(files)


def add(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)


def test_a_line_comes_when_it_is_whole(tmp_path) -> None:
    path = tmp_path / "x.csv"
    files = one(path)
    assert came(files) == []
    add(path, "one\ntw")
    assert came(files) == ["one"]
    assert came(files) == []
    files = again(files)
    assert came(files) == []
    add(path, "o\nthree\n")
    assert came(files) == ["two", "three"]


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("names", [("x.csv.1", "x.csv.2"), ("x.csv-20260101", "x.csv-20260102")])
def test_a_rotated_file_is_read_to_its_end_and_so_are_those_after_it(tmp_path, dies, names) -> None:
    path, (first, second) = tmp_path / "x.csv", names
    add(tmp_path / "x.csv.9", "old\n")
    add(tmp_path / "x.csv.bak", "no log\n")
    files = one(path)
    add(path, "a1\n")
    assert came(files) == ["a1"]
    add(path, "a2\na3")
    path.rename(tmp_path / first)
    add(path, "b1\nb2")
    files = again(files) if dies else files
    assert came(files) == ["a2", "b1"]
    add(tmp_path / first, " whole\n")  # whoever wrote it writes it still
    assert came(files) == ["a3 whole"]
    add(path, "\n")
    path.rename(tmp_path / second)
    add(path, "c1\nc2")
    files = again(files) if dies else files
    assert came(files) == ["b2", "c1"]
    path.rename(tmp_path / "x.csv.3")
    add(path, "d1\n")
    path.rename(tmp_path / "x.csv.4")
    add(path, "e1\n")
    os.utime(tmp_path / "x.csv.4", ns=(2**61, 2**61))
    files = again(files) if dies else files
    assert came(files) == ["c2", "d1", "e1"]  # half a line that nobody goes on with is one
    assert came(again(files)) == []


def test_a_file_that_went_elsewhere_is_read_while_it_is_open(tmp_path) -> None:
    path, elsewhere = tmp_path / "x.csv", tmp_path / "elsewhere"
    add(path, "a1\n")
    files = one(path)
    assert came(files) == ["a1"]
    add(path, "a2\n")
    path.rename(elsewhere)
    add(elsewhere, "a3\n")
    add(path, "b1\n")
    assert came(files) == ["a2", "a3", "b1"]
    elsewhere.unlink()
    assert came(again(files)) == []


def with_inode(files: GrowingFiles, old: int, path: Path) -> GrowingFiles:
    """Another one that goes on as if a file had got the inode of one that is gone."""
    inode = path.stat().st_ino
    changed = [replace(o, inode=inode) if o.inode == old else o for o in files.offsets]
    files.go_on(changed)
    return again(files)


def test_a_log_with_the_inode_of_an_empty_one_has_its_place(tmp_path) -> None:
    path, first, second = (tmp_path / name for name in ("x.csv", "x.csv.1", "x.csv.2"))
    files = one(path)
    add(path, "")
    assert came(files) == []
    path.rename(first)
    add(path, "1\n")
    assert came(files) == ["1"]
    first.rename(second)
    path.rename(first)
    add(path, "2\n")
    assert came(files) == ["2"]
    assert came(files) == []
    inode = second.stat().st_ino
    second.unlink()
    first.rename(second)
    path.rename(first)
    add(path, "3\nha")
    files = with_inode(files, inode, path)
    assert came(files) == ["3"]
    add(path, "lf\n")
    assert came(files) == ["half"]
    assert came(again(files)) == []


def test_a_log_with_the_inode_of_an_empty_one_left_alone_is_read(tmp_path) -> None:
    path, old = tmp_path / "x.csv", tmp_path / "x.csv.1"
    add(old, "")
    files, inode = one(path), old.stat().st_ino
    assert came(files) == []
    old.unlink()
    add(path, "1\n")
    files = with_inode(files, inode, path)
    assert came(files) == ["1"]


def test_what_may_be_lost_is_an_error(tmp_path) -> None:
    path = tmp_path / "x.csv"
    add(path, "a1\na2\n")
    files = one(path)
    assert came(files) == ["a1", "a2"]
    files = again(files)
    path.unlink()
    add(path.with_name("y"), "")  # so that the inode is another one's
    add(path, "b1\n")
    refused(files, r"S: .*x.csv.* read.* may be lost.*DROP S")


@pytest.mark.parametrize("dies", [False, True])
def test_a_truncated_file_goes_on_in_its_copy_or_is_an_error(tmp_path, dies) -> None:
    path, copy = tmp_path / "x.csv", tmp_path / "x.csv.1"
    add(path, "a1\n")
    files = one(path)
    assert came(files) == ["a1"]
    add(path, "a2\n")
    copy.write_bytes(path.read_bytes()[:2])
    assert came(files) == ["a2"]  # and nothing of the copy, which is not done yet
    add(path, "a3\n")
    copy.write_bytes(path.read_bytes())
    os.truncate(path, 0)
    add(path, "b1 is longer than what was there\n")
    files = again(files) if dies else files
    assert came(files) == ["a3", "b1 is longer than what was there"]
    os.truncate(path, 0)
    add(path, "c1\n")
    files = again(files) if dies else files
    refused(files, r"33 bytes were read, and it was truncated .*renaming")


@pytest.mark.parametrize("head", ["x\n", "x" * 2000 + "\n"])
def test_a_file_rotated_before_it_was_read_is_no_copy_for_its_head(tmp_path, head) -> None:
    path = tmp_path / "x.csv"
    files = one(path)
    add(path, f"{head}1\n")
    assert came(files) == [head[:-1], "1"]
    position = files.offsets
    path.rename(tmp_path / "x.csv.2")
    add(tmp_path / "x.csv.1", f"{head}2\n")
    add(path, f"{head}3\n")
    files = again(files)
    assert came(files) == [head[:-1], "2", head[:-1], "3"]
    assert position[0].inode == files.offsets[0].inode


@pytest.mark.parametrize("is_copy", [True, False])
def test_what_may_be_a_copy_or_not_is_an_error_that_names_the_way_out(tmp_path, is_copy) -> None:
    path, rotated = tmp_path / "x.csv", tmp_path / "x.csv.1"
    files = one(path)
    add(rotated, "1\n")
    add(path, "1\n2\n")
    refused(files, r"S: .*x.csv.1 holds what .*x.csv begins with.* move it away.* empty line")
    files = again(files)
    refused(files, r"x.csv.1 holds")
    if is_copy:
        rotated.unlink()
    else:
        add(rotated, "\n")
    assert came(files) == (["1", "2"] if is_copy else ["1", "", "1", "2"])


def test_a_rotated_file_without_rows_is_no_copy_and_nothing_is_lost(tmp_path) -> None:
    path, location = tmp_path / "x.csv", RotatedFile("x", tmp_path / "x.csv")
    files = GrowingFiles("S", location, lines_end, lambda head: head.content != b"x\n")
    add(path, "x\n1\n")
    assert came(files) == ["x", "1"]
    path.rename(tmp_path / "x.csv.3")
    add(tmp_path / "x.csv.2", "x\n")
    add(tmp_path / "x.csv.1", "")
    add(path, "x\n2\n")
    assert came(files) == ["x", "2"]
    assert [came(files) for _ in range(LOOKS_UNTIL_GONE)] == [[]] * LOOKS_UNTIL_GONE
    add(tmp_path / "x.csv.2", "3\n")
    assert came(files) == ["x", "3"]
    (tmp_path / "x.csv.1").write_bytes(path.read_bytes())
    assert came(files) == []


def test_a_copy_is_left_until_the_file_is_truncated_however_long_that_takes(tmp_path) -> None:
    path, copy = tmp_path / "x.csv", tmp_path / "x.csv.1"
    files = one(path)
    add(path, "1\n" * 3000)
    assert len(came(files)) == 3000
    for size in range(500, 6001, 500):
        copy.write_bytes(path.read_bytes()[:size])
        assert came(files) == []
    add(path, "2\n")
    assert came(files) == ["2"]
    copy.write_bytes(path.read_bytes() + b"3\n")
    os.truncate(path, 0)
    add(path, "4\n")
    assert came(files) == ["3", "4"]


def test_files_that_come_to_a_directory_are_read_once_by_their_names(tmp_path) -> None:
    files = all_of(tmp_path)
    assert came(files) == []
    for name, text in (("b.csv", "b1\n"), ("a.csv", "a1\n"), (".c.csv", "no\n"), ("d.txt", "no\n")):
        add(tmp_path / name, text)
    assert came(files) == ["a1", "b1"]
    add(tmp_path / "b.csv", "b2\nb3")
    (tmp_path / "a.csv").rename(tmp_path / "c.csv")
    add(tmp_path / "0.csv", "01\n")
    files = again(files)
    assert came(files) == ["b2", "01"]
    (tmp_path / "c.csv").unlink()  # all of it was read
    assert [came(files) for _ in range(LOOKS_UNTIL_GONE)] == [[]] * LOOKS_UNTIL_GONE
    assert [Path(each.name).name for each in files.offsets] == ["b.csv", "0.csv"]
    (tmp_path / "b.csv").unlink()  # and of this one not
    refused(files, r"b.csv was read up to byte 6, and .* not there")


class Moving(Location):
    """A directory that misses files as one does in which they are renamed meanwhile."""

    def files(self) -> list[Path]:
        return [each for each in super().files() if each not in MISSED]


MISSED: set[Path] = set()


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("dies", [False, True])
def test_a_file_that_a_look_misses_is_known_again(tmp_path, dies, is_whole) -> None:
    files = GrowingFiles("S", Moving("d", tmp_path, (".csv",)), lines_end)
    add(tmp_path / "a.csv", "a1\n" if is_whole else "a1\na")
    add(tmp_path / "b.csv", "b1\n")
    assert came(files) == ["a1", "b1"]
    for missed in range(1, LOOKS_UNTIL_GONE):
        MISSED.add(tmp_path / "a.csv")
        add(tmp_path / "b.csv", f"{missed}\n")
        assert came(files) == [f"{missed}"]
        assert [came(files) for _ in range(missed - 1)] == [[]] * (missed - 1)
        files = again(files) if dies else files
        MISSED.clear()
        assert came(files) == []
    add(tmp_path / "a.csv", "2\n")
    assert came(files) == ["2" if is_whole else "a2"]


def test_a_file_renamed_between_listing_and_opening_is_known_again(tmp_path, monkeypatch) -> None:
    files, path = all_of(tmp_path), tmp_path / "a.csv"
    add(path, "a1\n")
    assert came(files) == ["a1"]
    add(path, "a2\n")
    with monkeypatch.context() as during:
        during.setattr(Seen, "read", lambda *_: None)
        assert came(files) == []
    path.rename(tmp_path / "b.csv")
    assert came(files) == ["a2"]


def test_a_truncated_file_of_a_directory_does_not_go_on_in_one_that_is_alike(tmp_path) -> None:
    files = all_of(tmp_path)
    for name in ("a.csv", "b.csv"):
        add(tmp_path / name, "1\n")
    assert came(files) == ["1", "1"]
    os.truncate(tmp_path / "a.csv", 0)
    refused(files, r"a.csv: 2 bytes were read, and it was truncated")


def test_compressed_files_are_not_passed_over(tmp_path) -> None:
    files = GrowingFiles("S", Location("d", tmp_path, (".csv", ".csv.gz")), lines_end)
    (tmp_path / "a.csv.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"a.csv.gz is compressed"):
        came(files)


@pytest.mark.parametrize("seed", range(60))
def test_any_writes_rotations_and_restarts_lose_nothing(tmp_path, seed) -> None:
    rng, path, written, read = random.Random(seed), tmp_path / "x.csv", [], []
    files, rest = one(path), ""
    for step in range(60):
        match rng.randrange(8):
            case 0 | 1 | 2 | 3:
                lines = [f"{step}-{n}-{'x' * rng.randrange(300)}" for n in range(rng.randrange(8))]
                written += lines
                text = rest + "".join(f"{line}\n" for line in lines)
                cut = rng.randrange(len(text) + 1)
                add(path, text[:cut])
                rest = text[cut:]
            case 4 if path.exists() and not rest:
                for number in range(4, 0, -1):
                    if (tmp_path / f"x.csv.{number}").exists():
                        (tmp_path / f"x.csv.{number}").rename(tmp_path / f"x.csv.{number + 1}")
                path.rename(tmp_path / "x.csv.1")
                if rng.random() < 0.8:
                    add(path, "")
            case 5 if path.exists() and not rest:  # copied and truncated
                for number in range(4, 0, -1):
                    if (tmp_path / f"x.csv.{number}").exists():
                        (tmp_path / f"x.csv.{number}").rename(tmp_path / f"x.csv.{number + 1}")
                (tmp_path / "x.csv.1").write_bytes(path.read_bytes())
                read += came(files)
                os.truncate(path, 0)
                read += came(files)
            case 6:
                files = again(files)
            case _:
                read += came(files)
    add(path, rest)
    read += came(again(files))
    assert sorted(read) == sorted(written)
