"""What explainers say of themselves and of wrong input, in the first minutes with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx import GStarX, explain, explain_many, explain_nodes
from gstarx.explainers import create
from gstarx.models import GCN
from tests.gnn.hetero_networks import OnGraphs, seeded, small
from tests.pairs import for_each
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

PATH = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))


class _Regression(torch.nn.Module):
    """A network that says what it does, as wrapped models do."""

    mode = "regression"

    def forward(
        self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor
    ) -> torch.Tensor:
        return x.new_zeros(int(batch.max()) + 1, 1).index_add_(0, batch, 5 + x[:, :1])


@for_each(("seed", "error"), [("a", TypeError), (1.5, TypeError), (-1, ValueError)])
def test_a_seed_that_is_none_is_refused(seed: object, error: type[Exception]) -> None:
    model = GCN(3, 8, 2).eval()
    message = rf"^seed must be .* \(got {seed!r}\)"
    with pytest.raises(error, match=message):
        explain(model, PATH, seed=seed)  # type: ignore[arg-type]
    with pytest.raises(error, match=message):
        explain_many(model, [PATH], seed=seed, progress=False)  # type: ignore[arg-type]
    with pytest.raises(error, match=message):
        create("random", seed=seed).explain(model, PATH)


def test_features_of_numpy_are_named() -> None:
    data = Data(x=np.eye(3), edge_index=PATH.edge_index)
    with pytest.raises(
        TypeError, match=r"^data.x must be a tensor \(got ndarray\): use torch.as_te"
    ):
        explain(GCN(3, 8, 2).eval(), data)


def test_a_forgotten_task_level_is_suggested() -> None:
    model = GCN(3, 8, 2, readout=None).eval()
    with pytest.raises(
        ValueError, match=r"\(got \(3, 2\)\); for a model with a row per node, pass"
    ):
        explain(lambda x, edge_index: model(x, edge_index), PATH)
    with pytest.raises(ValueError, match=r"task='node' needs index=\.\.\., the node"):
        explain(model, PATH)  # which says what it does
    for several in ([0, 1], torch.tensor([0, 1])):
        with pytest.raises(TypeError, match="explain several nodes with explain_nodes"):
            explain(model, PATH, index=several, task="node")  # type: ignore[arg-type]


def test_a_model_that_knows_its_mode_is_not_asked_for_it() -> None:
    explanation = explain(_Regression(), PATH, baseline=0.0)
    assert explanation.mode == "regression"
    assert explanation.scores.tolist() == pytest.approx([6, 5, 5])
    (listed,) = explain_many(_Regression(), [PATH], baseline=0.0, progress=False)
    assert torch.equal(listed.scores, explanation.scores)  # type: ignore[union-attr]
    assert create("leave_one_out").explain(_Regression(), PATH).mode == "regression"
    # what the caller says holds
    with pytest.raises(ValueError, match="its mode is 'regression', and task says 'binary_class"):
        explain(_Regression(), PATH, task="binary")
    with pytest.raises(ValueError, match="there is no task 'no mode'"):
        explain(_Regression(), PATH, task="no mode")
    other = GCN(3, 8, 2).eval()
    other.mode = "fast"  # type: ignore[assignment]
    assert explain(other, PATH).mode == "multiclass_classification"
    nodes = GCN(3, 8, 2, readout=None).eval()
    nodes.mode = "regression"  # type: ignore[assignment]
    (node,) = explain_nodes(nodes, PATH, [1], target=0, progress=False)
    assert node.mode == "regression"  # type: ignore[union-attr]


def test_explainers_print_the_options_that_are_not_the_defaults() -> None:
    assert repr(GStarX()) == "GStarX()"
    assert repr(GStarX(value="banzhaf", budget=100)) == "GStarX(value='banzhaf', budget=100)"
    assert repr(GStarX(value="myerson")) == "GStarX()"
    long = repr(GStarX(baseline=torch.zeros(100)))
    assert long == "GStarX(baseline=...)"


def test_pictures_print_their_title_and_save_as_pdf(tmp_path: Path) -> None:
    picture = explain(GCN(3, 8, 2).eval(), PATH).draw(title="A path")
    assert repr(picture).startswith("Picture('A path', ")
    assert len(repr(picture)) < 60
    pytest.importorskip("resvg_py")
    written = picture.save(tmp_path / "path.pdf").read_bytes()
    assert written.startswith(b"%PDF-")
    width, height = picture.size
    box = written.split(b"/MediaBox [")[1].split(b"]")[0].split()
    assert [float(number) for number in box[2:]] == pytest.approx([width, height], abs=1)
    small = picture.save(tmp_path / "small.pdf", scale=1).read_bytes()
    assert len(small) < len(written)


def test_a_heterogeneous_explanation_prints_its_scores() -> None:
    explanation = explain(seeded(OnGraphs), small())
    printed = repr(explanation)
    assert printed.startswith(f"HeteroExplanation(\n  scores=[{len(explanation.scores)}],\n")
    assert "  value='myerson',\n  exact=True,\n" in printed
