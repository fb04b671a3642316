"""Explanations as files for other programs: a table with a row for every node, JSON, or SDF."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gstarx._internal.atomic_write import atomic_path
from gstarx._internal.optional import require
from gstarx.cli.console import CommandError, as_json, note, write

SUFFIXES = (".json", ".csv", ".parquet", ".sdf")
_COLUMNS = (
    *("graph", "smiles", "position", "explainer", "target", "target_name", "prediction"),
    *("node", "label", "score", "std_error", "selected", "error"),
)


def write_records(path: Path, content: Any) -> None:
    """Write what ``--json`` prints, in the format that the file's suffix names.

    JSON holds everything. CSV and Parquet have a row for every node, and a row with the error for
    what could not be read or explained. SDF has a record for every molecule, with the scores as
    atom properties.
    """
    records = content if isinstance(content, list) else [content]
    if path.suffix == ".json":
        write(path, as_json(content) + "\n")
    elif path.suffix == ".csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for record in records for row in _node_rows(record))
        write(path, text.getvalue())
    elif path.suffix == ".parquet":
        _write_parquet(path, [row for record in records for row in _node_rows(record)])
    else:
        _write_sdf(path, records)
    note(f"wrote {path}")


def _node_rows(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    common = {name: record.get(name) for name in ("graph", "smiles", "position", "explainer")}
    if record.get("error") is not None:
        yield {**common, "error": record["error"]}
        return
    common |= {"target": record["target"], "target_name": record["target_name"]}
    common["prediction"] = explained_output(record)
    for node in record["nodes"]:
        fields = {name: node[name] for name in ("label", "score", "std_error", "selected")}
        yield {**common, "node": node["index"], **fields}


def explained_output(record: Mapping[str, Any]) -> float | None:
    """The probability of the class, or the value of the target, that a record explains."""
    prediction = record["prediction"]
    outputs = prediction.get("values") or prediction.get("probabilities") or []
    target = record["target"]
    return float(outputs[target]) if target is not None and target < len(outputs) else None


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    arrow = require("pyarrow", extra="runs")
    parquet = require("pyarrow.parquet", extra="runs")
    kinds = dict.fromkeys(_COLUMNS, arrow.string())
    kinds |= dict.fromkeys(("position", "target", "node"), arrow.int64())
    kinds |= dict.fromkeys(("prediction", "score", "std_error"), arrow.float64())
    kinds["selected"] = arrow.bool_()
    schema = arrow.schema(list(kinds.items()))
    complete_rows = [{name: row.get(name) for name in _COLUMNS} for row in rows]
    with atomic_path(path) as temporary:
        parquet.write_table(arrow.Table.from_pylist(complete_rows, schema=schema), temporary)


def _write_sdf(path: Path, records: list[Mapping[str, Any]]) -> None:
    chem = require("rdkit.Chem", extra="molecules")
    depict = require("rdkit.Chem.rdDepictor", extra="molecules")
    blocks = []
    for record in records:
        if record.get("error") is not None or not record["smiles"]:
            continue
        molecule = chem.MolFromSmiles(record["smiles"])
        depict.Compute2DCoords(molecule)
        molecule.SetProp("_Name", str(record["graph"]))
        for name, value in _molecule_tags(record).items():
            molecule.SetProp(name, value)
        for name in ("score", "std_error"):
            numbers = [node[name] for node in record["nodes"]]
            if all(number is not None for number in numbers):
                for atom, number in zip(molecule.GetAtoms(), numbers, strict=True):
                    atom.SetDoubleProp(name, float(number))
                chem.CreateAtomDoublePropertyList(molecule, name)
        stream = io.StringIO()
        with chem.SDWriter(stream) as writer:
            writer.write(molecule)
        blocks.append(stream.getvalue())
    if not blocks:
        raise CommandError(f"{path} is not written: none of the graphs is a molecule")
    write(path, "".join(blocks))


def _molecule_tags(record: Mapping[str, Any]) -> dict[str, str]:
    """The data items of a molecule; the highlights are what drawing programs take."""
    from gstarx.drawing import score_color

    scores = [node["score"] or 0.0 for node in record["nodes"]]
    limit = max(map(abs, scores), default=0.0) or 1.0
    selected = [str(node["index"]) for node in record["nodes"] if node["selected"]]
    tags = {
        "smiles": str(record["smiles"]),
        "explainer": str(record["explainer"]),
        "target": str(record["target_name"] or record["target"]),
        "prediction": str(explained_output(record)),
        "highlight_atoms": " ".join(selected),
        "highlight_colors": " ".join(score_color(score, limit) for score in scores),
    }
    if record["metrics"] is not None:
        tags["H-fidelity"] = f"{record['metrics']['harmonic_fidelity']:.4f}"
    return tags
