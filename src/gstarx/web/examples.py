"""Inputs to try, for people who have none at hand."""

from __future__ import annotations

from typing import Any

#: Molecules with a name, for networks that know few elements and for those that know all.
_MOLECULES = {
    "nitro": (
        ("Nitrobenzene", "c1ccccc1[N+](=O)[O-]"),
        ("Paracetamol, nitrated", "CC(=O)Nc1ccc(O)c([N+](=O)[O-])c1"),
        ("Nitroglycerine", "C(C(CO[N+](=O)[O-])O[N+](=O)[O-])O[N+](=O)[O-]"),
        ("Chloramphenicol", "OCC(NC(=O)C(Cl)Cl)C(O)c1ccc([N+](=O)[O-])cc1"),
        ("Nifedipine", "COC(=O)C1=C(C)NC(C)=C(C1c1ccccc1[N+](=O)[O-])C(=O)OC"),
    ),
    "": (
        ("Aspirin", "CC(=O)Oc1ccccc1C(=O)O"),
        ("Caffeine", "Cn1cnc2c1c(=O)n(C)c(=O)n2C"),
        ("Ibuprofen", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"),
    ),
}
_SENTENCES = (
    "a gripping and wonderfully acted film",
    "the plot is thin but the cast is a delight",
    "it is not a bad film, just a long one",
)


def examples_for(dataset: str | None, inputs: list[str], data: Any) -> list[dict[str, Any]]:
    """Some inputs for a model, each with a title."""
    found: list[dict[str, Any]] = []
    if "smiles" in inputs:
        listed = _MOLECULES["nitro" if dataset in ("nitro", "mutag") else ""]
        found += [{"title": title, "input": {"smiles": smiles}} for title, smiles in listed]
    if "sentence" in inputs:
        found += [{"title": text, "input": {"sentence": text}} for text in _SENTENCES]
    if "graph" in inputs and not found:
        positions = data.split_indices.get("test", range(len(data)))[:4]
        found += [{"title": f"{dataset} {at}", "input": {"graph": int(at)}} for at in positions]
    return found
