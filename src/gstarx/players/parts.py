"""Parts of graphs that have names: functional groups, rings, fragments, words and node types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gstarx._internal.imports import require
from gstarx._internal.messages import quoted
from gstarx.players.atoms import as_molecule, is_molecule
from gstarx.registry import PARTS

#: Names of functional groups, and which of RDKit's patterns finds them: those of its hierarchy of
#: functional groups, or, beginning with ``fr_``, of its list of fragments.
FUNCTIONAL_GROUPS = {
    "acid chloride": "AcidChloride",
    "aldehyde": "Aldehyde",
    "amide": "fr_amide",
    "amidine": "fr_amidine",
    "amine": "Amine",
    "azide": "Azide",
    "azo": "fr_azo",
    "boronic acid": "BoronicAcid",
    "carboxylic acid": "CarboxylicAcid",
    "epoxide": "fr_epoxide",
    "ester": "fr_ester",
    "ether": "fr_ether",
    "guanidine": "fr_guanido",
    "halogen": "fr_halogen",
    "hydrazine": "fr_hdrzine",
    "hydrazone": "fr_hdrzone",
    "hydroxyl": "Alcohol",
    "imide": "fr_imide",
    "imine": "fr_Imine",
    "isocyanate": "Isocyanate",
    "isothiocyanate": "fr_isothiocyan",
    "ketone": "fr_ketone",
    "nitrile": "fr_nitrile",
    "nitro": "Nitro",
    "nitroso": "fr_nitroso",
    "oxime": "fr_oxime",
    "quaternary nitrogen": "fr_quatN",
    "sulfide": "fr_sulfide",
    "sulfonamide": "fr_sulfonamd",
    "sulfone": "fr_sulfone",
    "sulfonyl chloride": "SulfonylChloride",
    "terminal alkyne": "fr_term_acetylene",
    "thiocarbonyl": "fr_C=S",
    "thiol": "fr_SH",
    "urea": "fr_urea",
}


def default_kind(data: Data | str) -> str:
    """What a graph is divided into if nobody says."""
    if not isinstance(data, str) and data.get("words"):
        return "words"
    return "functional_groups" if isinstance(data, str) or is_molecule(data) else "node_types"


def groups_of(
    data: Data | str, by: str | Mapping[str, str] | None = None
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The named parts of a graph, each with its nodes in ascending order."""
    by = default_kind(data) if by is None else by
    if isinstance(by, Mapping):
        return _matches(as_molecule(data), {name: str(smarts) for name, smarts in by.items()})
    if by not in PARTS:
        valid = ", ".join(map(repr, PARTS))
        raise ValueError(f"by must be one of {valid}, or names with SMARTS (got {by!r})")
    if by == "words":
        return _words(data)
    if by == "node_types":
        return _node_types(data)
    molecule = as_molecule(data)
    bonds_known = not isinstance(data, Data) or data.get("smiles") is not None
    if by == "rings":
        return _rings(molecule, bonds_known)
    if by == "functional_groups":
        # without a SMILES there are neither bond orders nor hydrogens: nitro groups are recognized
        names = FUNCTIONAL_GROUPS if bonds_known else ("nitro",)
        patterns = _functional_groups()
        return _matches(molecule, {name: patterns[name] for name in names})
    if not bonds_known:
        raise ValueError(
            "BRICS fragments need the bonds of a molecule, from a SMILES (got a graph with atoms "
            "only): use by='rings' or by='node_types'"
        )
    return _brics(molecule)


def _matches(molecule: Any, patterns: Mapping[str, str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, pattern in patterns.items():
        # RDKit stops at a thousand matches by default
        matches = molecule.GetSubstructMatches(_query(pattern), uniquify=True, maxMatches=1 << 20)
        for atoms in sorted({tuple(sorted(match)) for match in matches}):
            yield name, atoms


@cache
def _query(pattern: str) -> Any:
    with require("rdkit.rdBase", extra="drawing").BlockLogs():
        query = require("rdkit.Chem", extra="drawing").MolFromSmarts(pattern)
    if query is None or not query.GetNumAtoms():
        raise ValueError(f"smarts must be patterns that RDKit can read (got {quoted(pattern)})")
    return query


@cache
def _functional_groups() -> dict[str, str]:
    """SMARTS of functional groups by name, from the lists that come with RDKit."""
    folder = Path(require("rdkit.RDConfig", extra="drawing").RDDataDir)
    known = {}
    for file in ("FragmentDescriptors.csv", "Functional_Group_Hierarchy.txt"):
        for line in (folder / file).read_text(encoding="utf-8").splitlines():
            fields = [field.strip() for field in line.split("\t") if field.strip()]
            if len(fields) > 2 and not fields[0].startswith(("#", "//")):
                at = 2 if fields[0].startswith("fr_") else 1
                known[fields[0]] = fields[at]
    return {name: known[key] for name, key in FUNCTIONAL_GROUPS.items()}


def _rings(molecule: Any, bonds_known: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Rings that share atoms are one system."""
    chem = require("rdkit.Chem", extra="drawing")
    systems: list[set[int]] = []
    for ring in molecule.GetRingInfo().AtomRings():
        touching = [system for system in systems if system & set(ring)]
        systems = [system for system in systems if not system & set(ring)]
        systems.append(set(ring).union(*touching))
    for system in sorted(map(sorted, systems)):
        if bonds_known:
            name = chem.MolFragmentToSmiles(molecule, system)
        else:
            symbols = sorted(molecule.GetAtomWithIdx(atom).GetSymbol() for atom in system)
            name = f"ring of {' '.join(symbols)}"
        yield name, tuple(system)


def _brics(molecule: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Fragments between the bonds that BRICS breaks; ``*`` is where they were joined."""
    chem = require("rdkit.Chem", extra="drawing")
    breakable = require("rdkit.Chem.BRICS", extra="drawing").FindBRICSBonds(molecule)
    bonds = [molecule.GetBondBetweenAtoms(*ends).GetIdx() for ends, _ in breakable]
    count, broken = molecule.GetNumAtoms(), molecule
    if bonds:
        broken = chem.FragmentOnBonds(molecule, bonds, dummyLabels=[(0, 0)] * len(bonds))
    for atoms in chem.GetMolFrags(broken):
        name = chem.MolFragmentToSmiles(broken, atoms)
        yield name, tuple(atom for atom in atoms if atom < count)


def _words(data: Data | str) -> Iterator[tuple[str, tuple[int, ...]]]:
    words = None if isinstance(data, str) else data.get("words")
    if not words:
        raise ValueError("by='words' needs graphs with words, as those of sentences have")
    for node, word in enumerate(words):
        yield str(word).lower(), (node,)


def _node_types(data: Data | str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Nodes one by one, named by what they are."""
    names = _type_names(data)
    for node, name in enumerate(names):
        yield name, (node,)


def _type_names(data: Data | str) -> list[str]:
    if isinstance(data, str) or is_molecule(data):
        return [
            f"aromatic {atom.GetSymbol()}" if atom.GetIsAromatic() else atom.GetSymbol()
            for atom in as_molecule(data).GetAtoms()
        ]
    count = int(data.num_nodes or 0)
    for field in ("labels", "node_type"):
        values = data.get(field)
        if values is not None and len(values) == count:
            plain = values.tolist() if hasattr(values, "tolist") else values
            return [str(value) for value in plain]
    x = data.get("x")
    if x is not None and x.dim() == 2 and x.shape[1] > 1:
        one_hot = ((x == 0) | (x == 1)).all() and (x.sum(dim=1) == 1).all()
        if one_hot:
            return [f"type {column}" for column in x.argmax(dim=1).tolist()]
    raise ValueError(
        "by='node_types' needs nodes that say what they are: a SMILES, atoms, labels, node_type, "
        f"or one-hot rows of x (got a graph with {', '.join(sorted(data.keys())) or 'nothing'})"
    )
