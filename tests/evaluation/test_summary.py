"""What drives a model over a dataset."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx.datasets import load
from gstarx.explainers import create
from gstarx.explanation import Explanation
from gstarx.models import pretrained
from gstarx_bench.summary import SummaryRow, summarize


def explained(scores: list[float], target: int = 0, **fields: object) -> Explanation:
    made = Explanation.from_scores(np.array(scores), num_nodes=len(scores), target=target)
    for name, value in fields.items():
        made[name] = value
    return made


def molecules(*smiles: str) -> list[Data]:
    from rdkit import Chem

    return [
        Data(smiles=one, name=f"m{i}", num_nodes=Chem.MolFromSmiles(one).GetNumAtoms())
        for i, one in enumerate(smiles)
    ]


def named(rows: list[SummaryRow]) -> dict[tuple[str, str], SummaryRow]:
    return {(row.explained, row.name): row for row in rows}


def test_nitro_groups_drive_the_class_of_nitro_compounds() -> None:
    model, _ = pretrained("nitro")
    dataset = load("nitro")
    graphs = dataset.split("test")[:40]
    explainer = create("leave_one_out")
    explanations = [explainer.explain(model, graph) for graph in graphs]
    rows = summarize(graphs, explanations, class_names=dataset.class_names)
    own = [row for row in rows if row.explained == "aromatic nitro group"]
    assert own[0].name == "nitro"
    assert own[0].sign == "for"
    assert own[0].low > 0.5
    assert own[0].graphs >= 15
    examples = {graph.smiles for graph in graphs if int(graph.y) == 1}
    assert set(own[0].examples) <= examples


def test_a_score_is_the_sum_over_atoms_averaged_over_occurrences_then_graphs() -> None:
    graphs = molecules("OCCO", "CO")
    rows = summarize(graphs, [[1, 0, 0, 3], [0, 10]], by="functional_groups")
    (row,) = rows
    assert (row.name, row.graphs, row.occurrences) == ("hydroxyl", 2, 3)
    assert row.mean == pytest.approx((2 + 10) / 2)
    assert row.low == 2
    assert row.high == 10
    assert row.examples == ("m1", "m0")
    (nitro,) = summarize(molecules("C[N+](=O)[O-]"), [[5, 1, 2, 3]])
    assert nitro.mean == 6


def test_classes_are_kept_apart() -> None:
    graphs = molecules("CO", "CO")
    results = [explained([0, 1.0], 0), explained([0, -2.0], 1)]
    rows = named(summarize(graphs, results, class_names=("no", "yes")))
    assert rows["no", "hydroxyl"].mean == 1
    assert rows["yes", "hydroxyl"].mean == -2
    only = summarize(graphs, results, target=1, class_names=("no", "yes"))
    assert [(row.target, row.explained, row.graphs) for row in only] == [(1, "yes", 1)]


def test_several_targets_of_one_explanation_are_rows_of_their_own() -> None:
    made = Explanation.from_scores(np.array([[0.0, 1.0], [2.0, 3.0]]), num_nodes=2)
    made.explained = [0, 2]
    made.mode, made.prediction = "regression", torch.zeros(1, 3)
    rows = named(summarize(molecules("CO"), [made], target_names=("a", "b", "c")))
    assert {key: row.mean for key, row in rows.items()} == {
        ("a", "hydroxyl"): 2.0,
        ("c", "hydroxyl"): 3.0,
    }


def test_outputs_of_a_regression_are_named() -> None:
    one = explained([0, 1.0], 0, mode="regression", prediction=torch.ones(1, 1))
    (row,) = summarize(molecules("CO"), [one])
    assert row.explained == "value"
    (row,) = summarize(molecules("CO"), [one], target_names=("logP",), class_names=("x",))
    assert row.explained == "logP"
    labels = explained([0, 1.0], 1, mode="binary_classification", prediction=torch.ones(1, 2))
    (row,) = summarize(molecules("CO"), [labels], target_names=("a", "b"), class_names=("x", "y"))
    assert row.explained == "b"


def test_a_sign_takes_an_interval_without_zero_and_six_graphs() -> None:
    def sign(scores: list[float]) -> str:
        graphs = molecules(*["CO"] * len(scores))
        return summarize(graphs, [[0, score] for score in scores])[0].sign

    assert sign([1.0] * 6) == "for"
    assert sign([-1.0] * 6) == "against"
    assert sign([1.0] * 5) == "unclear"
    assert sign([1.0, -1.0] * 10) == "unclear"


def test_groups_raise_and_lower_the_value_of_a_regression() -> None:
    graphs = molecules(*["NCCO"] * 6)
    one = explained([-1.0, 0, 0, 0.5], 0, mode="regression", prediction=torch.ones(1, 1))
    for results, mode in (
        ([one] * 6, "multiclass_classification"),
        ([one.scores] * 6, "regression"),
    ):
        rows = summarize(graphs, results, mode=mode)
        assert [row.sign for row in rows] == ["raises", "lowers"]
        assert ">raises<" in rows._repr_html_()
        assert ">against<" not in rows._repr_html_()


def test_those_with_a_sign_come_first_and_against_last() -> None:
    graphs = molecules(*["NCCO"] * 6, "CCl")
    results = [[-1.0, 0, 0, 0.5]] * 6 + [[0.0, 9.0]]
    assert [row.name for row in summarize(graphs, results)] == ["hydroxyl", "halogen", "amine"]


def test_the_interval_is_that_of_resampled_graphs_and_the_same_for_a_seed() -> None:
    generator = np.random.default_rng(0)
    graphs = molecules(*["CO"] * 200)
    scores = generator.normal(0.3, 1.0, 200)
    results = [[0.0, score] for score in scores]
    (row,) = summarize(graphs, results, seed=1)
    half = 1.96 * scores.std() / 200**0.5
    assert row.low == pytest.approx(scores.mean() - half, abs=0.03)
    assert row.high == pytest.approx(scores.mean() + half, abs=0.03)
    assert summarize(graphs, results, seed=1) == [row]
    assert summarize(graphs, results, seed=2) != [row]


def test_words() -> None:
    graphs = [Data(words=["Not", "good"], num_nodes=2), Data(words=["good", "not"], num_nodes=2)]
    rows = named(summarize(graphs, [[-1, 0.5], [0.3, -3]], names=["first", "second"]))
    assert rows["explained class", "not"].mean == -2
    assert rows["explained class", "not"].examples == ("second", "first")


def test_bad_input_is_refused() -> None:
    graphs = molecules("CO")
    with pytest.raises(ValueError, match=r"one explanation for each graph \(got 2 for 1\)"):
        summarize(graphs, [[1, 2], [1, 2]])
    with pytest.raises(ValueError, match=r"names must have 1 entries, one per graph \(got 0\)"):
        summarize(graphs, [[1, 2]], names=[])
    sets = Explanation.from_scores(None, num_nodes=2, sets=[np.array([0])])
    with pytest.raises(ValueError, match="finds sets of nodes"):
        summarize(graphs, [sets])
    molecule = load("nitro")[0]
    bonds = create("gstarx", players="edges").explain(pretrained("nitro")[0], molecule)
    with pytest.raises(ValueError, match="gives them to edges here: explain nodes instead"):
        summarize([molecule], [bonds])
    with pytest.raises(ValueError, match=r"scores must have shape \(2,\)"):
        summarize(graphs, [[1.0]])
    assert summarize([], []) == []
    assert summarize(molecules("CC"), [[1, 2]]) == []
