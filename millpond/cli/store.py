"""`millpond store`: looks whether a store is sound, repairs it, brings it to a new format."""

from pathlib import Path
from typing import Annotated

import typer

from millpond.cli.faults import report
from millpond.facade.repair import repair
from millpond.facade.upgrade import upgrade
from millpond.storage.objects.objects import is_address
from millpond.storage.soundness import check, held

EXIT_DAMAGED = 1

store = typer.Typer(
    help="Check, repair or upgrade a store directory. No engine may have it open.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _no_address(given: Path) -> Path:
    if is_address(str(given)):
        raise typer.BadParameter(
            "a store at an address is read through by the engine that opens it; this is for "
            "directories"
        )
    return given


Directory = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="the directory of the store", callback=_no_address),
]


@store.command("check")
def check_store(directory: Directory) -> None:
    """Read a store through: its log and every file; nothing is changed.

    Says what is damaged, with file and place. Ends with 0 if all is sound, with 1 if something is
    damaged, with 2 if it cannot be looked at.
    """
    place = directory.expanduser().absolute()
    try:
        with held(place):
            found = check(place)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001, the last door before the user
        raise typer.Exit(report(error)) from None
    for line in found.told():
        typer.echo(line)
    if not found.is_sound:
        typer.echo(f'"millpond store repair {directory}" brings it to its last sound state')
        raise typer.Exit(EXIT_DAMAGED)


@store.command("repair")
def repair_store(directory: Directory) -> None:
    """Bring a damaged store to its last sound state.

    Nothing is deleted: what no longer counts is moved to the folder set_aside of the store. Says
    what is lost; queries that have lost their state stand still until they are restarted.
    """
    try:
        told = repair(directory)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001, the last door before the user
        raise typer.Exit(report(error)) from None
    for line in told:
        typer.echo(line)


@store.command("upgrade")
def upgrade_store(directory: Directory) -> None:
    """Convert a store of an earlier version of Millpond to the format of this one.

    The store as it was is kept in a folder of its set_aside. If it cannot be converted, which is
    tried on that copy, nothing is changed.
    """
    try:
        told = upgrade(directory)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001, the last door before the user
        raise typer.Exit(report(error)) from None
    for line in told:
        typer.echo(line)
