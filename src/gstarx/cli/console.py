"""Output: results on stdout, everything else on stderr."""

from __future__ import annotations

import codecs
import csv
import errno
import io
import json
import logging
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gstarx._internal.files import write_atomically, written_path
from gstarx._internal.messages import HIDDEN, encodable, escaped

#: What is printed where the encoding of stdout lacks a character.
_PLAIN = {"█": "#", "↑": "^", "↓": "v", "±": "+-", "–": "-", "−": "-", "×": "x", "…": "..."}


class CommandError(Exception):
    """An error that the user can fix: reported in one line, without a traceback."""

    exit_code = 1


class WrongUse(CommandError):
    """A command that cannot be understood, whatever the files and networks are."""

    exit_code = 2


class _Literal(Console):
    """Prints text literally: a SMILES may look like markup, and names may hold control codes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, emoji=False, markup=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escaped(text), **options)


def out() -> Console:
    """A console on stdout for results."""
    return _Literal()


def note(message: str) -> None:
    """Print a message to stderr, apart from the results."""
    _Literal(stderr=True, soft_wrap=True).print(message)


@contextmanager
def any_text() -> Iterator[None]:
    """Let stdout take all characters, and print warnings and logs in words, without controls."""

    class Escaping(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return escaped(super().format(record))

    def in_words(message: Warning | str, *_: Any, **__: Any) -> str:
        return f"warning: {escaped(str(message))}\n"

    stdout, formatted, handler = sys.stdout, warnings.formatwarning, logging.lastResort
    codecs.register_error("gstarx", _in_plain_characters)
    errors = getattr(stdout, "errors", None)
    reconfigure = getattr(stdout, "reconfigure", lambda **_: None)
    reconfigure(errors="gstarx")
    warnings.formatwarning = in_words
    if handler is not None:
        handler.setFormatter(Escaping())
    try:
        yield
    finally:
        reconfigure(errors=errors)
        warnings.formatwarning = formatted
        if handler is not None:
            handler.setFormatter(None)


def of_stdout(error: BaseException) -> bool:
    """Whether an error says that stdout takes no more: those of files have their names."""
    if not isinstance(error, OSError):
        return False
    return error.filename is None and error.errno in (errno.EPIPE, errno.ENOSPC)


@contextmanager
def complete_output() -> Iterator[list[OSError]]:
    """Report in one line that stdout did not take all that was printed; yields such errors."""
    errors: list[OSError] = []
    try:
        yield errors
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if not of_stdout(error):
            raise
        errors.append(error)
        if error.errno != errno.EPIPE:  # the reader of a pipe has seen enough
            note(f"error: the output cannot be written: {error.strerror}")
        # what is left would fail again when the process exits
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    """What to print instead of characters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    plain = (_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lacking)
    return "".join(plain), error.end


def show_progress() -> bool:
    """Whether to show progress bars: only if stderr is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def progress(description: str, total: int) -> Iterator[Any]:
    """A progress bar on stderr over explanations; yields a function to call with the name of each.

    One warning at the end says how many of them are imprecise.
    """
    from gstarx._internal.progress import no_bars
    from gstarx.values import collect_imprecise, summarize_imprecise

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not show_progress() or total < 2,
    )
    imprecise: dict[str, list[Any]] = {}
    with ExitStack() as stack:
        stack.callback(summarize_imprecise, imprecise, total, "explanations")
        if not bar.disable:
            stack.enter_context(no_bars())  # two bars would write over each other
        stack.enter_context(bar)
        task = bar.add_task(description, total=total)
        collected = stack.enter_context(collect_imprecise())

        def step(name: str) -> None:
            imprecise.setdefault(name, []).extend(collected)
            collected.clear()
            bar.advance(task)

        yield step


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


def as_json(content: Any, stream: IO[str] | None = None) -> str:
    r"""Indented JSON; numbers that are not finite become ``null``.

    Control characters, and what the stream cannot encode, are written as escapes.

    >>> print(as_json({"a": float("nan"), "b": "\x9b"}))
    {
      "a": null,
      "b": "\u009b"
    }
    """
    unicode = (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")
    text = json.dumps(_finite(content), indent=2, ensure_ascii=not unicode, allow_nan=False)
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(content: Any, stream: IO[str] | None = None) -> None:
    """Print JSON."""
    stream = stream or sys.stdout
    print(as_json(content, stream), file=stream, flush=True)


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table as the text of a file, without formulas that a spreadsheet would carry out.

    >>> print(as_csv(["name", "score"], [{"name": "=1+1", "score": -0.5}]), end="")
    name,score
    '=1+1,-0.5
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(cell) for name, cell in row.items()} for row in rows)
    return text.getvalue()


def _inert(cell: Any) -> Any:
    """A cell that is not a formula: text that begins like one, unless it lists numbers."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        list(map(float, cell.split()))
    except ValueError:
        return f"'{cell}"
    return cell


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
    try:
        target = written_path(path)
        probe = target.with_name(f".{target.name}.probe")
        write_atomically(probe, b"")
        probe.unlink()
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def write(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    try:
        write_atomically(path, encodable(text).encode())
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
