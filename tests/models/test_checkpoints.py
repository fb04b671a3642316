"""The published weights, and files that are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

from gstarx.models import GCN, load_published_checkpoint
from tests.coalitions.one_by_one import graph
from tests.models.test_gcn import classify, dense
from tests.shared import checkpoint, mutag, mutag_gcn

#: Features, width, classes, readout, adjacency normalised, embeddings normalised.
PUBLISHED: dict[str, tuple[int, int, int, str | None, bool, bool]] = {
    "mutag": (7, 128, 2, "mean", True, False),
    "bbbp": (9, 128, 2, "max", True, False),
    "bace": (9, 128, 2, "max", True, False),
    "graph_sst2": (768, 128, 2, "max", True, False),
    "twitter": (768, 128, 3, "max", True, False),
    "ba_2motifs": (10, 20, 2, "mean", False, False),
    "ba_shapes": (10, 20, 4, None, False, True),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_gcn(name: str) -> None:
    path = checkpoint(f"{name}/gcn_3l_best.pth")
    model = load_published_checkpoint(path)
    features, width, classes, readout, normalize, normalize_embeddings = PUBLISHED[name]
    assert isinstance(model, GCN)
    assert not any(module.training for module in model.modules())
    assert len(model.convs) == 3
    assert model.readout == readout
    assert model.normalize == normalize
    assert model.normalize_embeddings == normalize_embeddings
    assert model.convs[0].lin.weight.shape == (width, features)
    assert model.classifier.weight.shape == (classes, width)
    stored = torch.load(path, weights_only=True)["net"]
    for i, conv in enumerate(model.convs):
        assert torch.equal(conv.lin.weight, stored[f"convs.{i}.weight"].T)
        assert torch.equal(conv.bias, stored[f"convs.{i}.bias"])
    # and it computes what the formula says
    data = graph("ring")
    x = torch.randn(6, features, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = model(x, data.edge_index).numpy()
    hidden = dense(model, x, data.edge_index)
    if readout is not None:
        hidden = {"mean": np.mean, "max": np.max}[readout](hidden, axis=0, keepdims=True)
    np.testing.assert_allclose(found, classify(model, hidden), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("split", "accuracy"), [("train", 0.893), ("val", 0.833), ("test", 0.85)])
def test_accuracies_on_mutag(split: str, accuracy: float) -> None:
    batch = Batch.from_data_list(mutag().split(split))
    with torch.no_grad():
        predicted = mutag_gcn()(batch.x, batch.edge_index, batch.batch).argmax(dim=1)
    assert (predicted == batch.y).double().mean().item() == pytest.approx(accuracy, abs=5e-4)


@pytest.mark.parametrize(
    "name", ["mutag/gin_3l_best.pth", "mutag/gin_3l_latest.pth", "graph_sst2/gat_3l_best.pth"]
)
def test_other_networks_are_refused(name: str) -> None:
    path = checkpoint(name)
    with pytest.raises(ValueError, match="does not hold a published GCN: expected keys like"):
        load_published_checkpoint(path)


def state(features: int = 7, width: int = 128, classes: int = 2, layers: int = 3) -> dict[str, Any]:
    torch.manual_seed(0)
    net: dict[str, Tensor] = {}
    for i in range(layers):
        net[f"convs.{i}.weight"] = torch.randn(features if i == 0 else width, width)
        net[f"convs.{i}.bias"] = torch.randn(width)
    net |= {"mlps.0.weight": torch.randn(classes, width), "mlps.0.bias": torch.randn(classes)}
    return {"net": net, "epoch": 3, "is_best": "True"}


def saved(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "weights.pth"
    torch.save(content, path)
    return path


def test_shapes_decide_and_not_the_name_of_the_folder(tmp_path: Path) -> None:
    model = load_published_checkpoint(saved(tmp_path, state(10, 20, 4)))
    assert (model.readout, model.normalize, model.normalize_embeddings) == (None, False, True)
    model = load_published_checkpoint(str(saved(tmp_path, state(7, 128, 2, layers=5))))
    assert len(model.convs) == 5


def test_options_say_otherwise(tmp_path: Path) -> None:
    path = saved(tmp_path, state())
    model = load_published_checkpoint(path, readout="sum", normalize=False)
    assert (model.readout, model.normalize) == ("sum", False)


def test_shapes_that_were_not_published(tmp_path: Path) -> None:
    path = saved(tmp_path, state(5, 16, 3))
    with pytest.raises(
        ValueError, match=r"not published \(5 features, 16 hidden, 3 classes\): say readout="
    ):
        load_published_checkpoint(path)
    with pytest.raises(ValueError, match="say readout="):
        load_published_checkpoint(path, normalize=False)
    model = load_published_checkpoint(path, readout="max")
    assert model.readout == "max"
    assert model.normalize
    assert load_published_checkpoint(path, readout=None).readout is None


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint at .*missing\.pth"):
        load_published_checkpoint(tmp_path / "missing.pth")
    with pytest.raises(FileNotFoundError, match="there is no checkpoint at"):
        load_published_checkpoint(tmp_path)


class Payload:
    """What a malicious file would run."""

    def __reduce__(self) -> Any:
        return print, ("code was run",)


def test_a_file_that_is_garbled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "weights.pth"
    for content in (b"", b"not a checkpoint", saved(tmp_path, state()).read_bytes()[:3000]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"weights\.pth is not a readable checkpoint"):
            load_published_checkpoint(path)
    torch.save({"net": Payload()}, path)
    with pytest.raises(ValueError, match="is not a readable checkpoint"):
        load_published_checkpoint(path)
    assert "code was run" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [[1, 2], {"epoch": 3}, {"net": 3}, {"net": {"convs": 3}}])
def test_a_file_of_another_kind(tmp_path: Path, content: Any) -> None:
    with pytest.raises(ValueError, match="must hold a dictionary with a state dictionary under"):
        load_published_checkpoint(saved(tmp_path, content))


def test_tensors_that_are_missing_or_too_many(tmp_path: Path) -> None:
    for change in ("convs.1.weight", "mlps.0.bias", "mlps.0.weight"):
        content = state()
        del content["net"][change]
        with pytest.raises(ValueError, match="does not hold a published GCN"):
            load_published_checkpoint(saved(tmp_path, content))
    content = state()
    content["net"]["mlps.1.weight"] = torch.ones(1)
    with pytest.raises(ValueError, match="does not hold a published GCN"):
        load_published_checkpoint(saved(tmp_path, content))
    with pytest.raises(ValueError, match=r"does not hold a published GCN.*\(got none\)"):
        load_published_checkpoint(saved(tmp_path, {"net": {}}))


def test_tensors_that_do_not_fit(tmp_path: Path) -> None:
    content = state()
    content["net"]["convs.1.weight"] = torch.ones(4, 4)
    with pytest.raises(ValueError, match="do not fit together"):
        load_published_checkpoint(saved(tmp_path, content))
    content = state()
    content["net"]["convs.0.weight"] = torch.ones(4)
    with pytest.raises(ValueError, match="do not fit together"):
        load_published_checkpoint(saved(tmp_path, content))
