"""Molecules: drawn by RDKit, with the scores of atoms beneath its lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import TIE_DASHES, Picture, Scene, card, color_bar
from gstarx.drawing.svg import CARD, INK, element, group, hatched_disc, line, number, tip
from gstarx.players import as_molecule, atom_names

#: Units of the SVG for one of RDKit's, in which a bond is 1.5 long.
_SCALE = 26.0
#: Of the disc beneath an atom.
RADIUS = 14.5
_BRIDGE = 15.0
_OUTLINE = 2.2
_GAP = 1.4
#: Between parts of a molecule that are not joined, in the lengths that RDKit draws bonds with.
_APART = 2.2
_NUMBER = re.compile(r"-?\d+\.\d+")
#: Attributes of RDKit's elements that are kept, and those that its ``style`` may set.
_KEPT = {"d", "cx", "cy", "rx", "ry", "r", "x", "y", "width", "height", "points", "transform"}
_STYLES = {"fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "fill-rule"}


def draw_molecule(
    molecule: Data | str,
    scores: ArrayLike,
    selected: ArrayLike | None = None,
    *,
    std_errors: ArrayLike | None = None,
    limit: float | None = None,
    title: str | None = None,
    caption: str | None = None,
    legend: bool = True,
    numbers: bool = False,
) -> Picture:
    """A molecule with the score of an atom as its color, and the selected atoms outlined.

    Parameters
    ----------
    molecule
        A SMILES, a graph that carries ``smiles``, or one with ``atoms``, as MUTAG's. Such a graph
        may state its ``bonds``: the order (1, 1.5 for aromatic, 2, 3) of each column of
        ``edge_index``. Otherwise bonds are single except in nitro groups, and no hydrogens are
        drawn.
    scores
        A score per atom: an array, a tensor, or a PyG explanation's ``node_mask``.
    selected
        Atoms to outline: ids, or a boolean mask.
    std_errors
        Standard errors of the scores: atoms whose 95% interval includes 0 are hatched.
    limit
        The absolute score at which colors saturate; by default the largest one. Give pictures the
        same limit to compare them.
    title
        What to print above.
    caption
        What to print below the title, such as the prediction.
    legend
        Whether to draw the color bar.
    numbers
        Whether to write its number beside every atom.

    Returns
    -------
    Picture
        White is 0, orange supports the explained class, blue opposes it.

    Examples
    --------
    >>> picture = draw_molecule(
    ...     "c1ccccc1[N+](=O)[O-]", [0, 0, 0, 0, 0, 0.2, 0.5, 0.4, 0.4], [6, 7, 8]
    ... )
    >>> picture.title
    'Molecule c1ccccc1[N+](=O)[O-]'
    """
    rdkit_molecule = as_molecule(molecule)
    names = atom_names(rdkit_molecule)
    painted = Painted.of(scores, selected, limit, names, std_errors=std_errors)
    return card(
        molecule_scene(rdkit_molecule, painted, numbers=numbers),
        title=title,
        caption=caption,
        alternative=f"Molecule {molecule_name(molecule)}",
        description=painted.described("atom") + unknown_bonds(molecule),
        legend=color_bar(painted.limit, marks=painted.marks) if legend else None,
    )


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


def molecule_scene(molecule: Any, painted: Painted, *, numbers: bool = False) -> Scene:
    """The drawing alone, of an RDKit molecule."""
    shapes, places, low, high = laid_out(molecule, numbers=numbers)
    parts = [_outline(places, bonds_of(molecule), painted.selected)]
    parts += [
        element(
            "circle",
            tip(painted.caption(atom)),
            cx=float(x),
            cy=float(y),
            r=RADIUS,
            fill=painted.color(atom),
        )
        for atom, (x, y) in enumerate(places)
    ]
    parts += [_tie(*places[atom]) for atom in np.flatnonzero(painted.tied)]
    parts += [hatched_disc(float(x), float(y), RADIUS) for x, y in places[painted.uncertain]]
    # the pointer must reach the circles below the lines
    lines = [element(shape.tag, **shape.attributes) for shape in shapes]
    parts.append(group(*lines, pointer_events="none"))
    body = group(*parts, transform=f"translate({number(-low[0])} {number(-low[1])})")
    return Scene(float(high[0] - low[0]), float(high[1] - low[1]), body)


@dataclass(frozen=True)
class Shape:
    """One of RDKit's lines or letters: an element of SVG and its attributes."""

    tag: str
    attributes: dict[str, str]


def bonds_of(molecule: Any) -> list[tuple[int, int]]:
    """The atoms that each bond joins."""
    return [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()]


def laid_out(
    molecule: Any, *, numbers: bool = False
) -> tuple[list[Shape], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """RDKit's lines and letters, the places of atoms, (n, 2), and two corners of the whole."""
    shapes, places, size = _rdkit_drawing(molecule, numbers)
    # RDKit does not know about the circles around atoms at the edge
    margin = RADIUS + _OUTLINE + _GAP
    low = np.minimum(places.min(axis=0) - margin, 0.0)
    return shapes, places, low, np.maximum(places.max(axis=0) + margin, size)


def _outline(
    places: NDArray[np.float64], bonds: list[tuple[int, int]], selected: NDArray[np.bool_]
) -> str:
    """One line around all selected atoms that are bonded to each other.

    Dark discs and bars with slightly smaller white ones over them leave the outline of their union.
    """
    atoms = np.flatnonzero(selected)
    bars = [(a, b) for a, b in bonds if selected[a] and selected[b]]
    parts = []
    for color, grown in ((INK, _GAP + _OUTLINE), (CARD, _GAP)):
        parts += [
            line(
                places,
                a,
                b,
                stroke=color,
                stroke_width=_BRIDGE + 2 * grown,
            )
            for a, b in bars
        ]
        parts += [
            element(
                "circle",
                cx=float(places[a][0]),
                cy=float(places[a][1]),
                r=RADIUS + grown,
                fill=color,
            )
            for a in atoms
        ]
    return group(*parts) if parts else ""


def _tie(x: float, y: float) -> str:
    """A dashed line around an atom that the cut tears from others with its score."""
    return element(
        "circle",
        cx=float(x),
        cy=float(y),
        r=RADIUS + _GAP + _OUTLINE / 2,
        fill="none",
        stroke=INK,
        stroke_width=_OUTLINE,
        stroke_dasharray=TIE_DASHES,
        pointer_events="none",
    )


def _rdkit_drawing(
    molecule: Any, numbers: bool
) -> tuple[list[Shape], NDArray[np.float64], NDArray[np.float64]]:
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
    shapes = [_plain(part) for part in root.iter() if part is not root and _is_shape(part)]
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


def _is_shape(part: ElementTree.Element) -> bool:
    return part.tag.rpartition("}")[2] in {"path", "rect", "ellipse", "circle", "polygon", "line"}


def _plain(part: ElementTree.Element) -> Shape:
    """A shape with attributes instead of a style, which pages may forbid, and short numbers."""
    attributes = {name: value for name, value in part.attrib.items() if name in _KEPT}
    for setting in part.attrib.get("style", "").split(";"):
        name, _, value = setting.partition(":")
        if name.strip() in _STYLES:
            attributes[name.strip()] = value.strip().removesuffix("px")
    if "fill" in part.attrib:
        attributes["fill"] = part.attrib["fill"]
    short = {n: _NUMBER.sub(lambda m: f"{float(m[0]):.1f}", v) for n, v in attributes.items()}
    return Shape(part.tag.rpartition("}")[2], short)
