"""Chemprop models are explained like any other, with the numbers that Chemprop predicts."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from gstarx import Explanation, GNNGame, Passes, Task, expected_output, explain, explain_many
from tests.cli.commands import found, gstarx, refused
from tests.shared import UNTRAINED

pytest.importorskip("chemprop")
pytestmark = [
    *UNTRAINED,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning:lightning"
    ),
]

from chemprop.models import save_model  # noqa: E402

from gstarx.integrations import chemprop  # noqa: E402
from gstarx.registry import ModelSource  # noqa: E402
from tests.integrations.networks import (  # noqa: E402
    AGGREGATIONS,
    MOLECULES,
    PARACETAMOL,
    PASSING,
    PREDICTORS,
    molecular_graph,
    network,
    predicted,
    rows,
    trained,
)


def all_coalitions(n: int) -> Any:
    return (np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1 == 1


def test_outputs_are_what_chemprop_predicts() -> None:
    for name in PREDICTORS:
        mpnn = network(name)
        model = chemprop.wrap(mpnn, return_type="probs")
        graph = chemprop.graph(PARACETAMOL)
        expected = predicted(mpnn, PARACETAMOL)
        if model.task == "classification":
            expected = expected[0]
        elif expected.dim() == 2:
            expected = expected[:, 0]
        with torch.no_grad():
            outputs = model(graph.x, graph.edge_index, graph.edge_attr, None, graph.rev_edge_index)
        assert torch.allclose(outputs[0], expected, atol=1e-6)


def test_raw_outputs_are_logits_of_the_same_probabilities() -> None:
    for name in (
        "binary",
        "several binaries",
        "binary Dirichlet",
        "multiclass",
    ):
        mpnn, graph = network(name), chemprop.graph(PARACETAMOL)
        raw, probs = chemprop.wrap(mpnn), chemprop.wrap(mpnn, return_type="probs")
        target = "all" if raw.task != "binary" else 1
        options: dict[str, Any] = {"target": target, "payoff": "prob", "baseline": 0.0}
        one = explain(raw, graph, task=raw.mode, **options)
        other = explain(probs, graph, task=Task(raw.mode, return_type="probs"), **options)
        assert torch.allclose(one.scores, other.scores, atol=1e-5)


@pytest.mark.parametrize(
    ("passing", "aggregation", "undirected"),
    [
        (passing, aggregation, (row + column) % 2 == 1)
        for row, passing in enumerate(PASSING)
        for column, aggregation in enumerate(AGGREGATIONS)
    ],
)
def test_worths_are_predictions_of_parts_and_shared_embeddings_change_nothing(
    passing: str, aggregation: str, undirected: bool
) -> None:
    mpnn = network("regression", aggregation, passing, undirected=undirected)
    model, graph = chemprop.wrap(mpnn), chemprop.graph("CC(=O)Oc1ccccc1")
    coalitions = all_coalitions(10)
    options: dict[str, Any] = {"task": "regression", "payoff": "raw"}
    plain = GNNGame(model, graph, passes=Passes(share=False), **options)(coalitions)
    shared = GNNGame(model, graph, passes=Passes(share=True), **options)
    assert np.allclose(shared(coalitions), plain, rtol=1e-4, atol=1e-4)
    assert shared.sharing.used
    assert shared.sharing.states < shared.sharing.nodes / 4
    # of coalitions whose atoms are cut out by hand
    for row in range(0, 1023, 97):
        inside = np.flatnonzero(coalitions[row])
        part = _cut(molecular_graph("CC(=O)Oc1ccccc1"), inside)
        with torch.no_grad():
            assert float(mpnn(part)) == pytest.approx(plain[row], rel=1e-4, abs=1e-4)


def _cut(graph: Any, inside: Any) -> Any:
    from chemprop.data import BatchMolGraph
    from chemprop.data.molgraph import MolGraph

    place = {node: at for at, node in enumerate(inside.tolist())}
    kept = [at for at, (a, b) in enumerate(graph.edge_index.T.tolist()) if {a, b} <= place.keys()]
    ends = np.array([[place[a] for a in graph.edge_index[side, kept]] for side in (0, 1)], int)
    back = np.arange(len(kept)).reshape(-1, 2)[:, ::-1].ravel()  # bonds come in pairs
    return BatchMolGraph([MolGraph(graph.V[inside], graph.E[kept], ends.reshape(2, -1), back)])


@pytest.mark.parametrize(
    ("name", "smiles"),
    [("regression", "C1CC1N"), ("binary", "CCO"), ("binary", "CC(=O)Nc1ccccc1")],
)
def test_myerson_values_are_those_of_the_myerson_package(name: str, smiles: str) -> None:
    from myerson.chemprop_explain import MyersonExplainer

    def in_double(_: Any, inputs: Any) -> None:  # Chemprop makes batches in single precision
        inputs[0].V, inputs[0].E = inputs[0].V.double(), inputs[0].E.double()

    mpnn = network(name).double()
    handle = mpnn.message_passing.register_forward_pre_hook(in_double)
    with torch.no_grad():
        theirs = MyersonExplainer(molecular_graph(smiles), mpnn).calculate_all_myerson_values()
    handle.remove()
    graph = chemprop.graph(smiles)
    graph.x, graph.edge_attr = graph.x.double(), graph.edge_attr.double()
    model = chemprop.wrap(mpnn)
    options = {} if name == "regression" else {"payoff": "prob", "target": 1}
    ours = explain(model, graph, value="myerson", baseline=0, task=model.mode, **options)
    assert ours.exact
    expected = np.asarray(theirs).reshape(-1)
    assert np.allclose(ours.scores.numpy(), expected, rtol=1e-6, atol=1e-9)


def test_scores_are_in_the_units_of_the_training_data() -> None:
    mpnn = network("regression")
    explanation = explain(
        chemprop.wrap(mpnn), chemprop.graph(PARACETAMOL), value="myerson", task="regression"
    )
    total = float(explanation.scores.sum()) + explanation.baseline[0]
    assert total == pytest.approx(float(predicted(mpnn, PARACETAMOL)), abs=1e-4)


def test_extra_descriptors_stay_as_they_are_and_the_explanation_says_so() -> None:
    mpnn, x_d = network("regression", extra=4), rows(1, 4)[0]
    model, graph = chemprop.wrap(mpnn), chemprop.graph(PARACETAMOL, x_d=x_d)
    explanation = explain(model, graph, value="myerson", task="regression")
    assert explanation.fixed == ["x_d"]
    assert "x_d" in explanation._repr_html_()
    assert explanation.to_dict()["fixed"] == ["x_d"]
    assert "x_d the same in every coalition" in explanation.draw().svg
    assert float(explanation.prediction) == pytest.approx(
        float(predicted(mpnn, PARACETAMOL, x_d)), abs=1e-4
    )
    plain = explain(chemprop.wrap(network()), chemprop.graph(PARACETAMOL), task="regression")
    assert plain.fixed == []


def test_scaled_descriptors_are_scaled_with_and_without_reverse_bonds() -> None:
    from chemprop import nn as layers

    mpnn = network("regression", extra=2)
    mpnn.X_d_transform = layers.ScaleTransform([1.0, -2.0], [0.5, 3.0])
    model = chemprop.wrap(mpnn.eval())
    graph = chemprop.graph(PARACETAMOL, x_d=[4.0, 5.0])
    fields = {"x_d": graph.x_d}
    with torch.no_grad():
        one = model(graph.x, graph.edge_index, graph.edge_attr, **fields)
        fields["rev_edge_index"] = graph.rev_edge_index
        other = model(graph.x, graph.edge_index, graph.edge_attr, **fields)
        mpnn.X_d_transform = torch.nn.Identity()
        unscaled = model(graph.x, graph.edge_index, graph.edge_attr, **fields)
    assert torch.allclose(one, other, atol=1e-4)
    assert not torch.allclose(one, unscaled, atol=1e-2)


def test_descriptors_of_atoms_come_and_go_with_their_atoms() -> None:
    torch.manual_seed(0)
    mpnn = network("regression", extra=3, d_vd=3)
    v_d = rows(11, 3)
    graph = chemprop.graph(PARACETAMOL, v_d=v_d)
    # V_d widens what the aggregation gives, which is what the predictor reads
    mpnn.bn = torch.nn.Identity()
    mpnn.X_d_transform = torch.nn.Identity()
    model = chemprop.wrap(mpnn)
    options: dict[str, Any] = {"task": "regression", "payoff": "raw"}
    coalitions = all_coalitions(11)[::7]
    plain = GNNGame(model, graph, passes=Passes(share=False), **options)(coalitions)
    assert np.allclose(
        GNNGame(model, graph, passes=Passes(share=True), **options)(coalitions), plain, atol=1e-4
    )


def test_extra_features_of_atoms_and_bonds_are_read() -> None:
    mpnn = network("regression", d_v=74, d_e=15)
    model = chemprop.wrap(mpnn)
    graph = chemprop.graph(PARACETAMOL, atom_features=rows(11, 2), bond_features=rows(11, 1))
    assert explain(model, graph, task="regression").scores.shape == (11,)
    with pytest.raises(ValueError, match=r"reads 74 numbers of an atom and 15 of a bond .got 72"):
        explain(model, chemprop.graph(PARACETAMOL), task="regression")


def test_every_set_of_features_of_chemprop() -> None:
    for features in chemprop.FEATURES:
        graph = chemprop.graph(PARACETAMOL, features=features)
        model = chemprop.wrap(network(d_v=graph.x.shape[1], d_e=graph.edge_attr.shape[1]))
        assert model.features == features
        assert explain(model, graph, task="regression").scores.shape == (11,)


def test_graphs_of_a_batch_keep_their_reverse_bonds() -> None:
    graphs = [chemprop.graph(smiles) for smiles in MOLECULES]
    batch = Batch.from_data_list(graphs)
    assert torch.equal(batch.edge_index[0, batch.rev_edge_index], batch.edge_index[1])
    model = chemprop.wrap(network())
    mean = float(expected_output(model, graphs, task="regression"))
    alone = np.mean([float(predicted(model.mpnn, smiles)) for smiles in MOLECULES])
    assert mean == pytest.approx(alone, abs=1e-4)


def test_many_molecules_get_the_scores_that_each_gets_alone() -> None:
    model, graphs = chemprop.wrap(network()), [chemprop.graph(smiles) for smiles in MOLECULES]
    options: dict[str, Any] = {"task": "regression", "value": "myerson"}
    together = explain_many(model, graphs, progress=False, **options)
    for graph, explanation in zip(graphs, together, strict=True):
        assert isinstance(explanation, Explanation)
        assert torch.allclose(explanation.scores, explain(model, graph, **options).scores)


def test_other_explainers_take_it_too() -> None:
    for explainer in (
        "gradient_x_input",
        "subgraphx",
        "graphsvx",
        "leave_one_out",
    ):
        from gstarx.explainers import create

        model, graph = chemprop.wrap(network()), chemprop.graph("CC(=O)Nc1ccccc1")
        explanation = create(explainer).explain(model, graph, seed=0, task="regression")
        assert explanation.score_edges().edge_mask.shape == (20,)


def test_bonds_and_fragments_are_scored() -> None:
    from gstarx.drawing import group_scores

    model = chemprop.wrap(trained("regression"))
    explanation = explain(
        model, chemprop.graph(PARACETAMOL), value="myerson", task="regression"
    ).score_edges()
    assert explanation.edge_mask.shape == (22,)
    groups = {group.name: group.score for group in group_scores(explanation.scores, PARACETAMOL)}
    assert groups["hydroxyl"] > 0.3  # the network has learned to count oxygen


def test_the_order_of_atoms_is_that_of_the_molecule() -> None:
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(PARACETAMOL)
    graph = chemprop.graph(molecule)
    assert graph.atoms == chemprop.graph(PARACETAMOL).atoms
    assert [a.GetSymbol() for a in Chem.MolFromSmiles(graph.smiles).GetAtoms()] == graph.atoms
    order = [10, 0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    other = chemprop.graph(Chem.RenumberAtoms(molecule, order))
    assert other.atoms == [graph.atoms[at] for at in order]
    assert "smiles" not in other  # no SMILES has its atoms in this order
    model = chemprop.wrap(network())
    options: dict[str, Any] = {"task": "regression", "value": "myerson"}
    scores = explain(model, graph, **options).scores
    found = explain(model, other, **options)
    assert torch.allclose(found.scores, scores[order], rtol=1e-4, atol=1e-4)
    assert "C10" in found.draw().svg  # drawn from its atoms and bonds
    with pytest.raises(TypeError, match=r"a SMILES or a Mol of RDKit .got int"):
        chemprop.graph(3)


def test_a_molecule_with_hydrogens_has_them_as_nodes() -> None:
    from chemprop.data import BatchMolGraph
    from chemprop.featurizers import SimpleMoleculeMolGraphFeaturizer
    from chemprop.utils import make_mol

    mpnn, molecule = network(), make_mol("CC=O", add_h=True)
    graph = chemprop.graph(molecule)
    assert graph.atoms == ["C", "C", "O", "H", "H", "H", "H"]
    orders = dict(zip(map(tuple, graph.edge_index.t().tolist()), graph.bonds.tolist(), strict=True))
    assert {ends for ends, order in orders.items() if order == 2} == {(1, 2), (2, 1)}
    assert sorted(orders.values()) == [1.0] * 10 + [2.0] * 2
    explanation = explain(chemprop.wrap(mpnn), graph, value="myerson", task="regression")
    with torch.no_grad():
        expected = float(mpnn(BatchMolGraph([SimpleMoleculeMolGraphFeaturizer()(molecule)])))
    assert float(explanation.prediction) == pytest.approx(expected, abs=1e-5)
    total = float(explanation.scores.sum()) + explanation.baseline[0]
    assert total == pytest.approx(expected, abs=1e-4)
    assert "smiles" not in chemprop.graph(make_mol("[H]C", keep_h=True))
    assert chemprop.graph(make_mol("CC=O")).smiles == "CC=O"


def test_logits_stay_finite_where_probabilities_are_0_or_1() -> None:
    for name in (
        "binary",
        "multiclass",
    ):
        mpnn = network(name)
        with torch.no_grad():
            for parameter in mpnn.predictor.ffn[-1].parameters():
                parameter *= 1000
        model, graph = chemprop.wrap(mpnn), chemprop.graph(PARACETAMOL)
        certain = predicted(mpnn, PARACETAMOL).flatten()
        assert bool(((certain == 0) | (certain == 1)).any())
        found = explain(model, graph, payoff="raw", value="myerson", target=0, task=model.mode)
        assert bool(found.scores.isfinite().all())


def test_logits_between_0_and_1_are_not_taken_for_probabilities(
    recwarn: pytest.WarningsRecorder,
) -> None:
    mpnn = network("binary")
    with torch.no_grad():
        for parameter in mpnn.predictor.ffn[-1].parameters():
            parameter *= 0.001
        mpnn.predictor.ffn[-1][-1].bias.fill_(0.1)
    model = chemprop.wrap(mpnn)
    probs = chemprop.wrap(mpnn, return_type="probs")
    for said in (model, probs):  # which say what they return
        explain(said, chemprop.graph("CCO"), task=model.mode)
    assert not [w for w in recwarn if "probabilities" in str(w.message)]
    with pytest.warns(UserWarning, match="look like probabilities"):
        explain(probs, chemprop.graph("CCO"), task=Task(model.mode, return_type="raw"))


# ---- files, the command, the explorer


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("chemprop")
    made = {name: folder / f"{name}.pt" for name in ("regression", "binary")}
    save_model(made["regression"], trained("regression"), ["oxygens"])
    save_model(made["binary"], trained("binary"), ["has oxygen"])
    return made


def test_a_file_is_read_without_running_what_is_in_it(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.load

    def checked(*arguments: Any, **options: Any) -> Any:
        assert options["weights_only"] is True
        return before(*arguments, **options)

    monkeypatch.setattr(torch, "load", checked)
    model = chemprop.load(files["regression"])
    assert (model.task, model.target_names) == ("regression", ("oxygens",))
    assert not model.training


def test_metrics_and_scalers_in_a_file_are_read_safely(tmp_path: Path) -> None:
    from chemprop import nn as layers
    from chemprop.models import MPNN

    mpnn = MPNN(
        layers.BondMessagePassing(
            d_h=8,
            graph_transform=layers.GraphTransform(
                layers.ScaleTransform([0.5] * 72, [2.0] * 72),
                layers.ScaleTransform([0.5] * 14, [2.0] * 14),
            ),
        ),
        layers.MeanAggregation(),
        layers.RegressionFFN(
            input_dim=8,
            criterion=layers.metrics.MAE(),
            output_transform=layers.UnscaleTransform([1.0], [2.0]),
        ),
        metrics=[layers.metrics.RMSE(), layers.metrics.R2Score()],
    ).eval()
    save_model(tmp_path / "model.pt", mpnn)
    model, graph = chemprop.load(tmp_path / "model.pt"), chemprop.graph(PARACETAMOL)
    expected = float(predicted(mpnn, PARACETAMOL))
    options: dict[str, Any] = {"task": "regression", "value": "myerson", "baseline": 0.0}
    shared = explain(model, graph, passes=Passes(share=True), **options)
    plain = explain(model, graph, passes=Passes(share=False), **options)
    assert float(shared.prediction) == pytest.approx(expected, abs=1e-5)
    assert torch.allclose(shared.scores, plain.scores, atol=1e-5)


def test_a_checkpoint_of_lightning_is_read(tmp_path: Path) -> None:
    mpnn = trained("regression")
    content = {
        "pytorch-lightning_version": "2.5.0",
        "epoch": 3,
        "state_dict": mpnn.state_dict(),
        "hyper_parameters": mpnn.hparams,
    }
    torch.save(content, tmp_path / "last.ckpt")
    model = chemprop.load(tmp_path / "last.ckpt")
    assert model.task == "regression"
    with torch.no_grad():
        assert torch.equal(model.mpnn.message_passing.W_i.weight, mpnn.message_passing.W_i.weight)


@pytest.mark.parametrize("place", ["model_0/best.pt", "model_0/checkpoints/best.ckpt", "best.pt"])
def test_a_model_that_was_trained_on_other_graphs_is_not_given_plain_ones(
    files: dict[str, Path], tmp_path: Path, place: str
) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(files["regression"].read_bytes())
    assert chemprop.load(path).reading == ()
    (tmp_path / "config.toml").write_text("add-h = true\nignore-stereo = false\n")
    with pytest.warns(UserWarning, match=r"trained with --add-h.*make_mol\(smiles, add_h=True\)"):
        assert chemprop.load(path).reading == ("add_h",)
    assert "--add-h" in refused("explain", "--smiles", "CCO", "--weights", path)
    (tmp_path / "config.toml").write_text("add-h = false\ntask-type = regression\n")
    assert chemprop.load(path).reading == ()


def test_names_of_targets_beside_a_checkpoint_are_read(
    files: dict[str, Path], tmp_path: Path
) -> None:
    content = torch.load(files["regression"], weights_only=False)
    content.pop("output_columns", None)
    torch.save(content, tmp_path / "last.ckpt")
    assert chemprop.load(tmp_path / "last.ckpt").target_names == ()
    (tmp_path / "config.toml").write_text("target-columns = [solubility]\nepochs = 3\n")
    assert chemprop.load(tmp_path / "last.ckpt").target_names == ("solubility",)
    # two names of one target: not its names
    (tmp_path / "config.toml").write_text("target-columns = [sol, ubility]\n")
    assert chemprop.load(tmp_path / "last.ckpt").target_names == ()


def test_the_split_beside_a_model_is_used(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "out" / "model_0" / "best.pt"
    path.parent.mkdir(parents=True)
    path.write_bytes(files["regression"].read_bytes())
    (tmp_path / "table.csv").write_text("id,smiles\na,CCO\nb,CCN\nc,CCC\nd,CCCC\n")
    (tmp_path / "other.csv").write_text("id,smiles\nd,CCCC\nnew,CCCO\nc,CCC\nb,CCN\n")
    arguments = ("explain", "--file", "other.csv", "--weights", path, "--split", "test")
    assert "unknown" in refused(*arguments)
    (tmp_path / "out" / "config.toml").write_text(
        "smiles-columns = [smiles]\ndata-path = [table.csv]\n"
    )
    splits = tmp_path / "out" / "splits.json"
    splits.write_text('[{"train": [3, 0], "val": [], "test": [1, 2]}]')
    assert [record["graph"] for record in found(*arguments)] == ["c", "b"]
    # the table was written after the split: its rows may be others
    os.utime(splits, (0, 0))
    assert chemprop.load(path).split is None
    splits.write_text('[{"train": [3, 9], "val": [], "test": []}]')
    assert chemprop.load(path).split is None


class _Surprise:
    def __reduce__(self) -> Any:
        return (print, ("run while loading",))


def test_a_file_with_more_than_weights_needs_trust(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = torch.load(files["regression"], weights_only=False)
    torch.save({**content, "more": _Surprise()}, tmp_path / "odd.pt")
    with pytest.raises(ValueError, match=r"more than weights .*__builtin__\.print|builtins\.print"):
        chemprop.load(tmp_path / "odd.pt")
    message = refused("explain", "--smiles", "CCO", "--weights", tmp_path / "odd.pt")
    assert "--trust" in message
    assert "run while loading" not in capsys.readouterr().out
    assert chemprop.load(tmp_path / "odd.pt", trust=True).task == "regression"
    assert "run while loading" in capsys.readouterr().out
    gstarx("explain", "--smiles", "CCO", "--weights", tmp_path / "odd.pt", "--trust")


def test_layers_of_other_packages_are_refused_and_their_modules_not_imported(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = "import torch\nclass Layer(torch.nn.Module):\n    pass\n"
    (tmp_path / "somebody_elses.py").write_text(written, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    content = torch.load(files["regression"], weights_only=False)
    layer = importlib.import_module("somebody_elses").Layer()
    torch.save({**content, "more": layer}, tmp_path / "odd.pt")
    monkeypatch.delitem(sys.modules, "somebody_elses")
    with pytest.raises(ValueError, match=r"more than weights .*somebody_elses\.Layer"):
        chemprop.load(tmp_path / "odd.pt")
    assert "somebody_elses" not in sys.modules


def test_a_checkpoint_of_version_1_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    args = argparse.Namespace(hidden_size=300, dataset_type="regression")
    torch.save({"args": args, "state_dict": {"encoder.encoder.0.W_i.weight": torch.ones(2)}}, path)
    with pytest.raises(ValueError, match=r"checkpoint of Chemprop 1.*chemprop convert -i old.pt"):
        chemprop.load(path)
    message = refused("explain", "--smiles", "CCO", "--weights", path)
    assert "Chemprop 1" in message
    assert "--model" not in message  # a hint for other files
    torch.save({"args": args, "state_dict": {}, "scaler": np.float64(3.0)}, path)
    with pytest.raises(ValueError, match="checkpoint of Chemprop 1"):
        chemprop.load(path)


def test_a_model_of_version_2_0_is_refused_with_the_way_to_convert_it(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = types.ModuleType("chemprop.nn.loss")
    loss.MSELoss = type("MSELoss", (torch.nn.Module,), {"__module__": loss.__name__})  # type: ignore[attr-defined]
    content = torch.load(files["regression"], weights_only=False)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, loss.__name__, loss)
        torch.save({**content, "criterion": loss.MSELoss()}, tmp_path / "old.pt")
    with pytest.raises(ValueError, match=r"Chemprop 2\.0.*chemprop convert -c v2_0_to_v2_1"):
        chemprop.load(tmp_path / "old.pt")
    message = refused("explain", "--smiles", "CCO", "--weights", tmp_path / "old.pt")
    assert "v2_0_to_v2_1" in message


def test_a_whole_model_in_a_file_needs_trust(tmp_path: Path) -> None:
    mpnn = network()
    torch.save(mpnn, tmp_path / "whole.pt")
    with pytest.raises(ValueError, match=r"pass trust=True"):
        chemprop.load(tmp_path / "whole.pt")
    model, graph = chemprop.load(tmp_path / "whole.pt", trust=True), chemprop.graph("CCO")
    with torch.no_grad():
        output = model(graph.x, graph.edge_index, graph.edge_attr)
    assert torch.allclose(output, predicted(mpnn, "CCO"), atol=1e-6)


def test_a_model_of_reactions_is_refused(tmp_path: Path) -> None:
    from chemprop.featurizers import CondensedGraphOfReactionFeaturizer

    width = CondensedGraphOfReactionFeaturizer().shape
    mpnn = network(d_v=width[0], d_e=width[1])
    with pytest.raises(TypeError, match="graphs of reactions"):
        chemprop.wrap(mpnn)
    save_model(tmp_path / "reactions.pt", mpnn)
    message = refused("explain", "--smiles", "CCO", "--weights", tmp_path / "reactions.pt")
    assert "reactions.pt cannot be explained" in message
    assert "reactions)" in message


def test_descriptors_of_another_shape_are_refused() -> None:
    for option, shape, message in (
        ("x_d", (2, 3), r"x_d must have 1 row\(s\), for the molecule \(got 2x3 numbers\)"),
        ("v_d", (2, 11), r"v_d must have 11 row\(s\), for each atom \(got 2x11 numbers\)"),
        ("v_d", (22, 1), r"v_d must have 11 row"),
        ("atom_features", (12,), r"atom_features must have 11 row"),
        ("bond_features", (22, 2), r"bond_features must have 11 row.*, for each bond"),
        ("v_d", (11, 2, 1), r"v_d must have 11 row.*got 11x2x1"),
    ):
        numbers: dict[str, Any] = {option: np.ones(shape)}
        with pytest.raises(ValueError, match=message):
            chemprop.graph(PARACETAMOL, **numbers)


def test_descriptors_must_be_finite_and_may_be_a_single_column() -> None:
    with pytest.raises(ValueError, match="x_d must be finite"):
        chemprop.graph("CCO", x_d=[1.0, np.nan])
    graph = chemprop.graph("CCO", v_d=[1.0, 2.0, 3.0], atom_features=[4.0, 5.0, 6.0])
    assert graph.v_d.tolist() == [[1.0], [2.0], [3.0]]
    assert graph.x[:, -1].tolist() == [4.0, 5.0, 6.0]


def test_a_constant_is_not_explained_without_a_word() -> None:
    from chemprop import nn as layers

    mpnn = network()
    mpnn.predictor.output_transform = layers.UnscaleTransform([121.0], [0.05])
    options: dict[str, Any] = {"task": "regression", "value": "myerson"}
    model, graph = chemprop.wrap(mpnn.eval()), chemprop.graph(PARACETAMOL)
    with pytest.warns(UserWarning, match="about equal and far from the baseline"):
        constant = explain(model, graph, baseline=0.0, **options)
    assert constant.scores.abs().max() > 20
    assert explain(model, graph, **options).scores.abs().max() < 1


def test_other_files_are_refused(tmp_path: Path) -> None:
    for content, message in (
        ({"weight": torch.ones(2)}, r"hyper_parameters and state_dict .got weight"),
        ([1, 2], r"hyper_parameters and state_dict"),
        ({"hyper_parameters": {"atom_predictor": 1}, "state_dict": {}}, "of atoms and bonds"),
        ({"hyper_parameters": {}, "state_dict": {}}, "does not fit the installed Chemprop"),
        (
            {"hyper_parameters": {"message_passing": {"cls": "x"}}, "state_dict": {}},
            "must be a layer",
        ),
    ):
        torch.save(content, tmp_path / "other.pt")
        with pytest.raises(ValueError, match=message):
            chemprop.load(tmp_path / "other.pt")


def test_damaged_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "damaged.pt").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="not a readable file of weights"):
        chemprop.load(tmp_path / "damaged.pt")
    with pytest.raises(FileNotFoundError, match="no file of weights"):
        chemprop.load(tmp_path / "missing.pt")
    weights = "--weights"
    assert "no file" in refused("explain", "--smiles", "CCO", weights, tmp_path / "missing.ckpt")


def test_trust_is_refused_where_it_means_nothing(tmp_path: Path) -> None:
    from gstarx.models import GCN, ModelSourceError
    from gstarx.models import save_model as save
    from gstarx.models.sources import load_source

    save(tmp_path / "own.safetensors", GCN(9, 4, 2))
    with pytest.raises(ModelSourceError, match="--trust is for files of other packages"):
        load_source(ModelSource(weights=tmp_path / "own.safetensors", trust=True))


def test_the_command_explains_a_chemprop_model(files: dict[str, Path]) -> None:
    command = ("explain", "--smiles", PARACETAMOL, "-e", "myerson", "--weights")
    record = found(*command, files["regression"])
    scores = record["explanation"]["scores"]
    ours = explain(
        chemprop.load(files["regression"]),
        chemprop.graph(PARACETAMOL),
        target=0,
        value="myerson",
        seed=0,
        task="regression",
    )
    assert np.allclose(scores, ours.scores.numpy(), atol=1e-9)
    assert "oxygens" in gstarx(*command, files["regression"]).stdout
    assert found(*command, files["binary"])["explanation"]["exact"]


def test_a_target_means_the_same_in_python_and_the_command(files: dict[str, Path]) -> None:
    model, graph = chemprop.load(files["binary"]), chemprop.graph(PARACETAMOL)
    outputs = model(graph.x, graph.edge_index, graph.edge_attr).detach().sigmoid()
    command = ("explain", "--smiles", PARACETAMOL, "--weights", files["binary"], "--target")
    names = {"0": "not has oxygen", "1": "has oxygen"}
    for number, name in names.items():
        ours = explain(model, graph, target=int(number), seed=0, task=model.mode)
        for said in (number, name):
            record = found(*command, said)
            scores = record["explanation"]["scores"]
            assert np.allclose(scores, ours.scores.numpy(), atol=1e-9)
            assert (record["target"], record["target_name"]) == (int(number), name)
            assert record["prediction"]["probabilities"][1] == pytest.approx(float(outputs))
    positive = float(outputs) > 0.5
    assert record["prediction"]["name"] == names[str(int(positive))]


def test_a_table_goes_through_a_run(files: dict[str, Path], tmp_path: Path) -> None:
    table = tmp_path / "molecules.csv"
    table.write_text("smiles\n" + "\n".join([*MOLECULES, "c1ccc"]) + "\n", encoding="utf-8")
    gstarx(
        *("evaluate", "--file", table, "--weights", files["regression"], "-e", "myerson"),
        *("--store", tmp_path / "runs", "--workers", "1", "--no-references"),
        *("--baseline", "singletons"),
    )
    from gstarx_bench import runs

    stored = runs.read(tmp_path / "runs").to_pylist()
    assert {row["graph"] for row in stored} == set(range(len(MOLECULES)))


def test_the_explorer_explains_a_chemprop_model(files: dict[str, Path]) -> None:
    from gstarx_explorer.serve_command import served_models
    from tests.web.test_own import entry, explained

    for name in files:
        (served,) = served_models([], files[name])
        known = entry(served)
        assert known["problem"] is None
        assert (known["inputs"], known["kind"]) == (["smiles"], "molecule")
        parts = explained(served, {"smiles": PARACETAMOL}, best=False)
        assert len(parts["result"][0]["scores"]) == 11


def test_models_of_something_else_are_refused() -> None:
    from chemprop import nn as layers
    from chemprop.models import MulticomponentMPNN

    blocks = layers.MulticomponentMessagePassing([layers.BondMessagePassing(d_h=4)] * 2, 2)
    several = MulticomponentMPNN(
        blocks, layers.MeanAggregation(), layers.RegressionFFN(input_dim=8)
    )
    with pytest.raises(TypeError, match=r"of one molecule .*a model of several molecules"):
        chemprop.wrap(several)
    with pytest.raises(TypeError, match=r"of one molecule .got Linear"):
        chemprop.wrap(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="return_type must be one of 'raw', 'probs'"):
        chemprop.wrap(network(), return_type="logits")
    with pytest.raises(ValueError, match="output is for multiclass"):
        chemprop.wrap(network(), output=0)


def test_a_multiclass_model_of_several_tasks_needs_to_know_which() -> None:
    from chemprop import nn as layers

    mpnn = network()
    mpnn.predictor = layers.MulticlassClassificationFFN(n_classes=3, n_tasks=2, input_dim=12)
    with pytest.raises(ValueError, match=r"2 multiclass tasks: choose one with output=0\.\.1"):
        chemprop.wrap(mpnn)
    model = chemprop.wrap(mpnn.eval(), output=1, return_type="probs")
    graph = chemprop.graph("CCO")
    with torch.no_grad():
        outputs = model(graph.x, graph.edge_index, graph.edge_attr)
    assert torch.allclose(outputs[0], predicted(mpnn, "CCO")[1], atol=1e-6)


def test_what_a_smiles_does_not_give_is_named(tmp_path: Path) -> None:
    mpnn = network("regression", extra=4)
    with pytest.raises(ValueError, match=r"4 extra descriptors of the molecule.*graph.smiles, x_d"):
        explain(chemprop.wrap(mpnn), chemprop.graph("CCO"), task="regression")
    save_model(tmp_path / "extra.pt", mpnn)
    message = refused("explain", "--smiles", "CCO", "--weights", tmp_path / "extra.pt")
    assert "4 extra descriptors of the molecule, which a SMILES does not give" in message


@pytest.mark.parametrize("smiles", ["", "C1CC", "CN(C)(C)C"])
def test_molecules_that_rdkit_refuses_are_refused_with_its_reason(smiles: str) -> None:
    with pytest.raises(ValueError, match=r"no SMILES|unclosed ring|valence"):
        chemprop.graph(smiles)
    with pytest.raises(ValueError, match="features must be one of 'v2'"):
        chemprop.graph("CCO", features="v3")


def test_without_chemprop_the_message_names_the_extra(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "chemprop"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "chemprop", None)
    with pytest.raises(ImportError, match=r"pip install 'gstarx\[chemprop\]'"):
        chemprop.graph("CCO")
    message = refused("explain", "--smiles", "CCO", "--weights", files["binary"])
    assert "gstarx[chemprop]" in message
