"""The example notebooks run from top to bottom, and results show themselves in notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from gstarx import explain
from gstarx.datasets import smiles_graph
from gstarx.drawing import compare
from gstarx.models import pretrained
from gstarx_bench.summary import summarize

NOTEBOOKS = Path(__file__).parent.parent / "examples"
NAMES = ("own_model", "molecules", "text", "large_graph", "comparing")


def test_there_are_no_other_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(NAMES)


def shown_kinds(cell: Any) -> list[str]:
    """What kinds of output a cell has, besides warnings."""
    return [o.output_type for o in cell.get("outputs", ()) if o.get("name") != "stderr"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    before = [shown_kinds(cell) for cell in notebook.cells]
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    # PyG imports bars of notebooks, which warns where ipywidgets is not installed
    outputs = [o for o in outputs if "IProgress not found" not in o.get("text", "")]
    assert not [o for o in outputs if o.get("name") == "stderr" or o.output_type == "error"]
    # what is stored, and shown in the documentation, has outputs in the same places
    assert [shown_kinds(cell) for cell in notebook.cells] == before


def bundle(shown: Any) -> dict[str, str]:
    found: dict[str, str] = shown._repr_mimebundle_(include=None, exclude=None)
    assert all(isinstance(content, str) and content for content in found.values())
    return found


def test_results_show_themselves_in_notebooks() -> None:
    model, _ = pretrained("nitro")
    data = smiles_graph("Cc1ccc([N+](=O)[O-])cc1", "nitro")
    explanation = explain(model, data, target=1)
    shown = bundle(explanation)
    assert "<svg" in shown["text/html"]
    assert "<table>" in shown["text/html"]
    assert explanation._repr_svg_() is not None
    picture = compare(data, {"one": explanation, "two": explanation})
    assert bundle(picture)["image/svg+xml"].startswith("<svg")
    summary = summarize([data] * 3, [explanation] * 3)
    assert isinstance(summary, list)
    shown = bundle(summary)
    assert "nitro" in shown["text/html"]
    assert "<svg" in shown["text/html"]
    assert summary._repr_svg_().startswith("<svg")


def test_an_explanation_that_cannot_be_drawn_shows_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, _ = pretrained("nitro")
    explanation = explain(model, smiles_graph("CCO", "nitro"))
    monkeypatch.setattr(type(explanation), "draw", lambda *_, **__: torch.zeros(1).no_such)
    assert explanation._repr_svg_() is None
    assert "<table>" in explanation._repr_html_()


def test_progress_bars_are_those_of_notebooks_in_notebooks() -> None:
    from tqdm.auto import tqdm

    from gstarx.explainers import explaining

    assert explaining.tqdm is tqdm
