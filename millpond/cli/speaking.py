"""What both shells share: they speak at once, and survive whatever a statement does."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from millpond.cli.faults import Script, describe_fault, report
from millpond.errors import MillpondError


def say(text: str) -> None:
    """Prints a line, if there is something in it."""
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


@contextmanager
def surviving(text: str, has_timing: Callable[[], bool]) -> Iterator[None]:
    """Within it faults of what was typed are printed, and how long it took if that is wanted."""
    start = time.perf_counter()
    try:
        yield
    except MillpondError as error:
        sys.stderr.write(describe_fault(error, Script("<shell>", text)) + "\n")
    except KeyboardInterrupt:
        say("stopped")
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001, a shell survives whatever a statement does
        report(error)
    if has_timing():  # what was typed may have changed that
        say(f"time: {time.perf_counter() - start:.3f} s")
