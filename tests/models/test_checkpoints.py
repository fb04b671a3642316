"""The published weights, and files that are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gstarx import datasets
from gstarx.models import GAT, GCN, GIN, Network
from gstarx_bench.models import accuracy, load_published_checkpoint
from tests.gnn.one_by_one import graph
from tests.models import test_gat, test_gin
from tests.models.test_gcn import classify, dense
from tests.shared import DATA, checkpoint, mutag

#: Features, width, classes, readout, adjacency normalized, embeddings normalized.
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


@pytest.mark.parametrize("which", ["best", "latest"])
def test_the_published_gin(which: str) -> None:
    path = checkpoint(f"mutag/gin_3l_{which}.pth")
    model = load_published_checkpoint(path)
    assert isinstance(model, GIN)
    assert not any(module.training for module in model.modules())
    assert model.config == GIN(7, 128, 2, readout="max").config
    stored = torch.load(path, weights_only=True)["net"]
    for name, tensor in stored.items():
        ours = name.replace("mlps.0", "classifier")
        assert torch.equal(model.state_dict()[ours], tensor)
    assert len(stored) == len(model.state_dict())
    data = graph("ring")
    x = torch.eye(7)[torch.arange(6)]
    with torch.no_grad():
        found = model.embed(x, data.edge_index).numpy()
    expected = test_gin.dense(model, x, data.edge_index)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_the_published_gat() -> None:
    path = checkpoint("graph_sst2/gat_3l_best.pth")
    model = load_published_checkpoint(path)
    assert isinstance(model, GAT)
    assert not any(module.training for module in model.modules())
    assert model.config == GAT(768, 10, 2, heads=10, readout="max").config
    stored = torch.load(path, weights_only=True)["net"]
    for i, conv in enumerate(model.convs):
        assert torch.equal(conv.att_src, stored[f"gnn_layers.{i}.att_l"])
        assert torch.equal(conv.att_dst, stored[f"gnn_layers.{i}.att_r"])
        assert torch.equal(conv.lin.weight, stored[f"gnn_layers.{i}.lin_l.weight"])
        assert torch.equal(conv.bias, stored[f"gnn_layers.{i}.bias"])
    assert torch.equal(model.classifier.weight, stored["mlps.0.weight"])
    data = graph("messy")
    x = torch.randn(7, 768, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = model.embed(x, data.edge_index).numpy()
    expected = test_gat.dense(model, x, data.edge_index)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("gcn_3l_best", [134 / 150, 15 / 18, 17 / 20]),
        ("gin_3l_best", [146 / 150, 18 / 18, 18 / 20]),
        ("gin_3l_latest", [148 / 150, 18 / 18, 20 / 20]),
    ],
)
def test_accuracies_on_mutag(which: str, expected: list[float]) -> None:
    model = load_published_checkpoint(checkpoint(f"mutag/{which}.pth"))
    found = [accuracy(model, mutag().split(split)) for split in ("train", "val", "test")]
    assert found == expected


@pytest.mark.parametrize(
    ("name", "file", "right", "of"),
    [
        ("bbbp", "BBBP/BBBP.csv", 177, 205),
        ("bace", "BACE/bace.csv", 122, 152),
        ("ba_2motifs", "BA_2Motifs/ba_2motifs.npz", 98, 100),
    ],
)
def test_accuracies_on_other_datasets(name: str, file: str, right: int, of: int) -> None:
    if not (DATA / file).is_file():
        pytest.skip(f"{name} is not in {DATA}")
    if name in ("bbbp", "bace"):
        pytest.importorskip("rdkit")
    model = load_published_checkpoint(checkpoint(f"{name}/gcn_3l_best.pth"))
    graphs = datasets.load(name, DATA).split("test")
    assert len(graphs) == of
    assert accuracy(model, graphs) == right / of


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
        ValueError, match=r"not published \(5 features, 16 hidden, 3 classes\): pass readout="
    ):
        load_published_checkpoint(path)
    with pytest.raises(ValueError, match="pass readout="):
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


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    for content in (
        *([1, 2], {"epoch": 3}, {"net": 3}, {"net": {"convs": 3}}, {"net": {3: torch.ones(2)}}),
        {"net": {"convs.0.weight": torch.ones(2, 2).to_sparse()}},
        {"net": {"convs.0.weight": torch.ones(2, 2, dtype=torch.complex64)}},
    ):
        with pytest.raises(ValueError, match="must hold a dictionary with a state dictionary"):
            load_published_checkpoint(saved(tmp_path, content))


NOT_PUBLISHED = "does not hold a published GCN, GIN or GAT: "


def test_gcn_tensors_that_are_missing_too_many_or_do_not_fit(tmp_path: Path) -> None:
    changes: dict[str, Any] = dict.fromkeys(("convs.1.weight", "mlps.0.bias", "mlps.0.weight"))
    changes |= {"mlps.1.weight": torch.ones(1), "convs.x.weight": torch.ones(1)}
    changes |= {"convs.": torch.ones(1), "convs.7.weight": torch.ones(1)}
    changes |= {"convs.1.bias": torch.ones(4), "convs.0.weight": torch.ones(4)}
    for name, tensor in changes.items():
        content = state()
        content["net"][name] = tensor
        if tensor is None:
            del content["net"][name]
        with pytest.raises(ValueError, match=NOT_PUBLISHED):
            load_published_checkpoint(saved(tmp_path, content))
    with pytest.raises(ValueError, match=NOT_PUBLISHED + "it has none of"):
        load_published_checkpoint(saved(tmp_path, {"net": {}}))


def of_gin(features: int = 7, width: int = 128, layers: int = 3) -> dict[str, Any]:
    model = GIN(features, width, 2, num_layers=layers)
    stored = {k.replace("classifier", "mlps.0"): v for k, v in model.state_dict().items()}
    return {"net": stored, "epoch": 3}


def of_gat(features: int = 768, heads: int = 10, layers: int = 3) -> dict[str, Any]:
    model = GAT(features, 10, 2, heads=heads, num_layers=layers)
    stored = {
        key.replace("classifier", "mlps.0")
        .replace("convs", "gnn_layers")
        .replace("att_src", "att_l")
        .replace("att_dst", "att_r")
        .replace("lin.weight", "lin_l.weight"): tensor
        for key, tensor in model.state_dict().items()
    }
    for i in range(layers):
        stored[f"gnn_layers.{i}.lin_r.weight"] = stored[f"gnn_layers.{i}.lin_l.weight"].clone()
    return {"net": stored, "epoch": 3}


@pytest.mark.parametrize(("build", "network"), [(of_gin, GIN), (of_gat, GAT)])
def test_other_networks_of_other_shapes(tmp_path: Path, build: Any, network: type[Network]) -> None:
    model = load_published_checkpoint(saved(tmp_path, build(layers=4)), readout="sum")
    assert isinstance(model, network)
    assert (model.config["num_layers"], model.readout) == (4, "sum")
    path = saved(tmp_path, build(5))
    width = 128 if network is GIN else 100
    with pytest.raises(
        ValueError, match=rf"\(5 features, {width} hidden, 2 classes\): pass readout=\.\.\.$"
    ):
        load_published_checkpoint(path)
    assert load_published_checkpoint(path, readout=None).readout is None
    with pytest.raises(TypeError, match="normalize"):
        load_published_checkpoint(path, readout="max", normalize=False)


@pytest.mark.parametrize(
    ("build", "missing", "wrong"),
    [
        (
            of_gin,
            ["convs.1.eps", "convs.2.nn.1.running_var"],
            ["convs.0.nn.0.weight", "mlps.0.bias"],
        ),
        (
            of_gat,
            ["mlps.0.bias", "gnn_layers.1.att_r"],
            ["gnn_layers.0.att_l", "gnn_layers.1.bias"],
        ),
    ],
)
def test_tensors_of_other_networks_that_are_missing_or_do_not_fit(
    tmp_path: Path, build: Any, missing: list[str], wrong: list[str]
) -> None:
    for name in missing + wrong:
        content = build()
        content["net"][name] = torch.ones(3, 1, 2, 2)
        if name in missing:
            del content["net"][name]
        with pytest.raises(ValueError, match=NOT_PUBLISHED):
            load_published_checkpoint(saved(tmp_path, content))


def test_a_gat_with_two_maps_is_another_network(tmp_path: Path) -> None:
    content = of_gat()
    content["net"]["gnn_layers.1.lin_r.weight"][0, 0] += 1
    with pytest.raises(ValueError, match=r"gnn_layers\.1\.lin_r\.weight differs from lin_l"):
        load_published_checkpoint(saved(tmp_path, content))
