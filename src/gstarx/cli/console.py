"""Output: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from gstarx._internal.files import write_atomically


class CommandError(Exception):
    """An error that the user can fix: reported in one line, without a traceback."""

    exit_code = 1


class WrongUse(CommandError):
    """A command that cannot be understood, whatever the files and networks are."""

    exit_code = 2


def out() -> Console:
    """A console on stdout that prints text literally: a SMILES may look like markup."""
    return Console(highlight=False, emoji=False, markup=False)


def note(message: str) -> None:
    """Print a message to stderr, apart from the results."""
    Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True).print(message)


def show_progress() -> bool:
    """Whether to show progress bars: only if stderr is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def progress(description: str, total: int) -> Iterator[Any]:
    """A progress bar on stderr; yields a function to call after every step."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not show_progress() or total < 2,
    )
    with bar:
        task = bar.add_task(description, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def only_json(enabled: bool) -> Iterator[IO[str]]:
    """Stdout itself; with JSON enabled, everything else printed inside goes to stderr."""
    stdout = sys.stdout
    if not enabled:
        yield stdout
        return
    with redirect_stdout(sys.stderr):
        yield stdout


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block, so that nothing is written in part."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        raise KeyboardInterrupt


def as_json(content: Any) -> str:
    """Indented JSON; numbers that are not finite become ``null``.

    >>> print(as_json({"a": float("nan")}))
    {
      "a": null
    }
    """
    return json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False)


def print_json(content: Any, stream: IO[str] | None = None) -> None:
    """Print JSON."""
    print(as_json(content), file=stream or sys.stdout, flush=True)


def table(*columns: str, title: str | None = None, left: int = 1) -> Table:
    """An empty table: the first ``left`` columns aligned left, the others right."""
    empty = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, name in enumerate(columns):
        empty.add_column(name, justify="left" if i < left else "right", overflow="fold")
    return empty


def writable(path: Path | None, *suffixes: str) -> None:
    """Raise unless a file can be written there; called before the work, not after it."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise WrongUse(f"{path} must end in {' or '.join(suffixes)} (got {path.suffix!r})")
    if path.is_dir():
        raise CommandError(f"cannot write {path}: it is a directory")
    probe = path.with_name(f".{path.name}.probe")
    try:
        write_atomically(probe, b"")
        probe.unlink()
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def write(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
