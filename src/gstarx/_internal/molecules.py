"""Molecules as RDKit reads them, with its reasons where it refuses one; loads no torch."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

from gstarx._internal.imports import require

#: The longest SMILES; what a cell of a CSV file can hold as well.
LONGEST_SMILES = 131_072


@contextmanager
def rdkit_messages() -> Iterator[Callable[[], str]]:
    """Catch what RDKit says inside, which it otherwise prints; yields what gives the reason."""
    base = require("rdkit.rdBase", extra="molecules")
    stream = io.StringIO()
    base.LogToPythonStderr()
    try:
        with redirect_stderr(stream):
            yield lambda: _reason(stream.getvalue())
    finally:
        base.LogToCppStreams()


def _reason(messages: str) -> str:
    """The first message, without the time, and without the input, which is shown anyway."""
    for line in messages.splitlines():
        message = line.partition("] ")[2] or line
        for end in (" while parsing:", " for input:"):
            message = message.partition(end)[0]
        if message.strip():
            return message.strip().removeprefix("SMILES Parse Error: ")
    return ""


def read_molecule(smiles: str) -> tuple[Any, str]:
    """A molecule of RDKit, or ``None`` and the reason why RDKit refuses the SMILES.

    >>> read_molecule("CN(C)(C)C")
    (None, 'Explicit valence for atom # 1 N, 4, is greater than permitted')
    >>> read_molecule("C1CC")
    (None, 'unclosed ring')
    """
    chem = require("rdkit.Chem", extra="molecules")
    if not smiles.strip():
        return None, "no SMILES"
    if len(smiles) > LONGEST_SMILES:
        return None, f"a SMILES has at most {LONGEST_SMILES:,} characters (got {len(smiles):,})"
    with rdkit_messages() as reason:
        molecule = chem.MolFromSmiles(smiles.strip())
    if molecule is None:
        return None, reason() or "no molecule to RDKit"
    if not molecule.GetNumAtoms():
        return None, "no atoms"
    return molecule, ""
