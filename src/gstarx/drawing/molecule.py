"""The layout of molecules, by RDKit."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx._internal.imports import require
from gstarx.drawing.geometry import Geometry, Mark, NodePlace
from gstarx.drawing.svg import number, plain
from gstarx.players import atom_names

#: Units of the SVG for one of RDKit's, in which a bond is 1.5 long.
_SCALE = 26.0
#: Of the disc beneath an atom, and the room that it and its outline need.
_RADIUS, _ROOM = 14.5, 18.1
#: Between parts of a molecule that are not joined, in the lengths that RDKit draws bonds with.
_APART = 2.2
#: A command of a path, or one of its numbers.
_TOKEN = re.compile(r"([MLQCSTZ])|(-?\d+(?:\.\d+)?)")


def molecule_name(molecule: Data | str) -> str:
    """The SMILES if there is one, else the formula of its atoms, as in ``C6 N O2``."""
    if isinstance(molecule, str):
        return molecule
    if getattr(molecule, "smiles", None) is not None:
        return str(molecule.smiles)
    symbols = [str(symbol) for symbol in molecule.atoms]
    counts = {symbol: symbols.count(symbol) for symbol in sorted(set(symbols))}
    return " ".join(f"{symbol}{count if count > 1 else ''}" for symbol, count in counts.items())


def unknown_bonds(molecule: Data | str) -> str:
    """A note for a molecule without bond orders."""
    stated = isinstance(molecule, str) or any(
        getattr(molecule, field, None) is not None for field in ("smiles", "bonds")
    )
    return "" if stated else " The orders of its bonds are not known: they are drawn as single."


def molecule_geometry(molecule: Any, title: str, *, numbers: bool = False) -> Geometry:
    """The layout of an RDKit molecule; bonds and letters are marks."""
    shapes, places, size = _rdkit_drawing(molecule, numbers)
    # RDKit does not know about the circles around atoms at the edge
    low = np.minimum(places.min(axis=0) - _ROOM, 0.0)
    width, height = (np.maximum(places.max(axis=0) + _ROOM, size) - low).tolist()
    left, top = low.tolist()
    bonds = ((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds())
    described = zip(molecule.GetAtoms(), atom_names(molecule), (places - low).tolist(), strict=True)
    return Geometry(
        "molecule",
        title,
        width,
        height,
        tuple(NodePlace(atom.GetSymbol(), name, x, y, _RADIUS) for atom, name, (x, y) in described),
        tuple((min(pair), max(pair)) for pair in bonds),
        tuple(_mark(attributes, left, top) for attributes in shapes),
        written=False,
    )


def _rdkit_drawing(
    molecule: Any, numbers: bool
) -> tuple[list[dict[str, str]], NDArray[np.float64], NDArray[np.float64]]:
    """RDKit's lines and letters, the places of atoms, (n, 2), and the size."""
    drawing = require("rdkit.Chem.Draw.rdMolDraw2D", extra="drawing")
    depictor = require("rdkit.Chem.rdDepictor", extra="drawing")
    prepared = drawing.PrepareMolForDrawing(
        molecule, kekulize=_can_kekulize(molecule), addChiralHs=False
    )
    if not molecule.GetNumConformers():
        depictor.Compute2DCoords(prepared)
        depictor.StraightenDepiction(prepared)
        _set_apart(prepared)
    canvas = drawing.MolDraw2DSVG(-1, -1)
    options = canvas.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground = False
    options.scalingFactor = _SCALE
    options.bondLineWidth = 1.6
    options.padding = 0.02
    options.addAtomIndices = numbers
    options.annotationFontScale = 0.45
    options.prepareMolsBeforeDrawing = False
    canvas.DrawMolecule(prepared)
    canvas.FinishDrawing()
    places = [canvas.GetDrawCoords(atom) for atom in range(molecule.GetNumAtoms())]
    root = ElementTree.fromstring(canvas.GetDrawingText())
    size = np.array([float(root.attrib[side].removesuffix("px")) for side in ("width", "height")])
    shapes = [plain(part, 1) for part in root.iter() if part.tag.endswith("path")]
    return shapes, np.array([[p.x, p.y] for p in places]), size


def _set_apart(molecule: Any) -> None:
    """Put parts that are not joined, as in a salt, beside each other: RDKit lets them touch."""
    chem = require("rdkit.Chem", extra="drawing")
    parts = [list(part) for part in chem.GetMolFrags(molecule)]
    if len(parts) < 2:
        return
    conformer = molecule.GetConformer()
    places = np.array(conformer.GetPositions())
    right = 0.0
    for part in sorted(parts, key=len, reverse=True):
        fragment = places[part]
        middle = (fragment[:, 1].min() + fragment[:, 1].max()) / 2
        places[part] += [right - fragment[:, 0].min(), -middle, 0.0]
        right = places[part, 0].max() + _APART
    for atom, place in enumerate(places.tolist()):
        conformer.SetAtomPosition(atom, place)


def _can_kekulize(molecule: Any) -> bool:
    """Whether aromatic bonds can be written as single and double ones."""
    chem = require("rdkit.Chem", extra="drawing")
    try:
        with require("rdkit.rdBase", extra="drawing").BlockLogs():
            chem.Kekulize(chem.Mol(molecule))
    except (ValueError, RuntimeError):
        return False
    return True


def _mark(attributes: dict[str, str], left: float, top: float) -> Mark:
    """A path of RDKit's, moved so that the picture begins at the origin."""
    fill, stroke = (
        None if color == "none" else color for color in map(attributes.get, ("fill", "stroke"))
    )
    moved = _moved(attributes["d"], left, top)
    return Mark(moved, fill, stroke, float(attributes.get("stroke-width", 0)))


def _moved(path: str, left: float, top: float) -> str:
    """A path of absolute points, shifted.

    >>> _moved("M 3,4 L 5.5 6 Z", 1.0, 2.0)
    'M2 2L4.5 4Z'
    """
    tokens: list[str] = []
    across = True
    for letter, written in _TOKEN.findall(path):
        if letter:
            tokens.append(letter)
            across = True
            continue
        value = number(float(written) - (left if across else top))
        tokens.append(value if tokens[-1].isalpha() else f" {value}")
        across = not across
    return "".join(tokens)
