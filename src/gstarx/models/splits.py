"""Which graphs a model was trained on: the split of a training, kept with the weights.

A table changes after the training: rows are added, lose their labels or change places. So the split
is kept by what the rows hold, as truncated hashes, and never by their positions.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch_geometric.data import Data

from gstarx._internal.imports import require
from gstarx._internal.molecules import read_molecule
from gstarx.gnn import hetero_of

#: Sides of a split. A graph that lies on several counts for the first: the model has seen it.
SIDES = ("train", "val", "test")
#: Bytes of a hash. A graph among a million is taken for another in one of ten million tables.
_WIDTH = 8


@dataclass(frozen=True)
class SplitRecord:
    """The split of a training, by the content of its graphs.

    Attributes
    ----------
    hashes
        By side, the truncated hashes of its graphs.

    Examples
    --------
    >>> graphs = [Data(smiles="CCO", name="ethanol"), Data(smiles="CO"), Data(smiles="CCC")]
    >>> record = SplitRecord.of(graphs, {"train": [0], "test": [1]})
    >>> [record.side(graph) for graph in reversed(graphs)]
    [None, 'test', 'train']
    >>> SplitRecord.read(record.written()) == record
    True
    """

    hashes: Mapping[str, frozenset[bytes]]

    @classmethod
    def of(cls, graphs: Sequence[Data], split_indices: Mapping[str, Sequence[int]]) -> SplitRecord:
        """The record of a dataset.

        Graphs are known by their content, molecules both as they are written and as RDKit writes
        them. Where the same content lies on several sides, its rows are known by their names as
        well.
        """
        written = {at: content_of(graphs[at]) for at in _all(split_indices)}
        contents = {at: _canonical(graphs[at]) or found for at, found in written.items()}
        sides: defaultdict[bytes, set[str]] = defaultdict(set)
        spellings: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for side in SIDES:
            for at in split_indices.get(side, ()):
                sides[contents[at]].add(side)
                spellings[contents[at]] |= {contents[at], written[at]}
        hashes: dict[str, set[bytes]] = {side: set() for side in SIDES}
        for side in SIDES:
            for at in split_indices.get(side, ()):
                content = contents[at]
                hashes[side] |= set(map(_hash, spellings[content]))
                if len(sides[content]) > 1 and (name := _name(graphs[at])):
                    hashes[side] |= {_hash(written[at], name), _hash(content, name)}
        return cls({side: frozenset(found) for side, found in hashes.items()})

    def side(self, graph: Data) -> str | None:
        """The side that a graph was on, or ``None`` if the training did not have it."""
        side = self._side(content_of(graph), _name(graph))
        if side is None and (content := _canonical(graph)) is not None:
            return self._side(content, _name(graph))
        return side

    def _side(self, content: bytes, name: str) -> str | None:
        for key in (*([_hash(content, name)] if name else ()), _hash(content)):
            for side in SIDES:
                if key in self.hashes.get(side, ()):
                    return side
        return None

    def split_indices(self, graphs: Iterable[Data]) -> dict[str, list[int]]:
        """The positions of graphs on each side."""
        positions: dict[str, list[int]] = {side: [] for side in SIDES}
        for at, graph in enumerate(graphs):
            side = self.side(graph)
            if side is not None:
                positions[side].append(at)
        return positions

    def written(self) -> dict[str, str]:
        """The record as JSON holds it: for each side its hashes in base64, without an order."""
        return {
            side: base64.b64encode(b"".join(sorted(found))).decode()
            for side, found in self.hashes.items()
        }

    @classmethod
    def read(cls, written: Any) -> SplitRecord:
        """The record that :meth:`written` wrote.

        Raises
        ------
        ValueError
            If it is none.
        """
        if not isinstance(written, Mapping) or not set(written) <= set(SIDES):
            raise ValueError(f"a split has the sides {', '.join(SIDES)} (got {str(written)[:80]})")
        hashes = {}
        for side, text in written.items():
            try:
                found = base64.b64decode(text, validate=True)
            except (TypeError, ValueError) as error:
                raise ValueError(f"the hashes of {side} are not base64: {error}") from error
            if len(found) % _WIDTH:
                raise ValueError(f"the hashes of {side} must have {_WIDTH} bytes each")
            hashes[side] = frozenset(found[at : at + _WIDTH] for at in range(0, len(found), _WIDTH))
        return cls(hashes)


def content_of(graph: Data) -> bytes:
    """What a graph is known by: its SMILES, or else all of its tensors except labels."""
    smiles = graph.get("smiles")
    if isinstance(smiles, str) and smiles:
        return b"smiles " + smiles.strip().encode()
    sha = hashlib.sha256()
    for key in sorted(graph.keys()):
        part = graph[key]
        if key != "y" and isinstance(part, torch.Tensor):
            sha.update(f"{key} {tuple(part.shape)} {part.dtype}\n".encode())
            flat = part.detach().cpu().contiguous().reshape(-1)
            sha.update(flat.view(torch.uint8).numpy().tobytes())
    typed = hetero_of(graph)
    if typed is not None:
        sha.update(typed.digest())
    return sha.digest()


def _canonical(graph: Data) -> bytes | None:
    """The content of a molecule in RDKit's own SMILES, which another table may have.

    It is not the only content, because it differs between versions of RDKit.
    """
    smiles = graph.get("smiles")
    if not isinstance(smiles, str) or find_spec("rdkit") is None:
        return None
    chem = require("rdkit.Chem", extra="molecules")
    molecule, _ = read_molecule(smiles)
    return None if molecule is None else content_of(Data(smiles=chem.MolToSmiles(molecule)))


def _all(split_indices: Mapping[str, Sequence[int]]) -> set[int]:
    return {at for side in SIDES for at in split_indices.get(side, ())}


def _name(graph: Data) -> str:
    name = graph.get("name")
    return name if isinstance(name, str) else ""


def _hash(content: bytes, name: str = "") -> bytes:
    return hashlib.sha256(content + b"\0" + name.encode()).digest()[:_WIDTH]
