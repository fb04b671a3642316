"""What a report shows is what the metrics say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx import Judge
from gstarx.datasets import load
from gstarx.explainers import create
from gstarx.explanation import Attribution, Explanation
from gstarx.metrics import SPARSITIES, Reference, evaluate
from gstarx.models import pretrained
from gstarx.values import PrecisionWarning
from gstarx_bench.models import accuracy
from gstarx_bench.report import ReportData, ReportOptions, build_report, report_page

COUNT = 4


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    return pretrained("nitro")[0]


@pytest.fixture(scope="module")
def graphs() -> list[Data]:
    # small ones, for which the search for the best selection is short
    small = [graph for graph in load("nitro") if graph.num_nodes <= 10]
    return small[:COUNT]


@pytest.fixture(scope="module")
def report(model: torch.nn.Module, graphs: list[Data]) -> ReportData:
    sets = [
        Explanation.from_scores(None, num_nodes=g.num_nodes, sets=[np.array([0, 1])], evaluations=7)
        for g in graphs
    ]
    scores = [np.linspace(1, -1, graph.num_nodes) for graph in graphs]
    explainers = {"loo": create("leave_one_out"), "sets": sets, "given": scores}
    return build_report(
        Judge(model), graphs, explainers, title="T", names=list("abcd"), progress=False
    )


def test_one_warning_about_the_precision_of_many(model: torch.nn.Module) -> None:
    large = [graph for graph in load("nitro") if graph.num_nodes >= 18][:3]
    explainers = {"few": create("gstarx", budget=50)}
    options: dict[str, Any] = {"options": ReportOptions(optimum=False), "progress": False}
    with pytest.warns(PrecisionWarning) as caught:
        build_report(Judge(model), large, explainers, title="T", **options)
    (warning,) = caught
    assert "of 3 graphs have imprecise scores, the worst being graph" in str(warning.message)


def test_rows_are_the_explainers_and_the_references(report: ReportData) -> None:
    assert [(row.name, row.kind) for row in report.rows] == [
        ("loo", "explainer"),
        ("sets", "explainer"),
        ("given", "explainer"),
        ("random selection", "random"),
        ("best selection found", "optimum"),
    ]
    assert [len(row.graphs) for row in report.rows] == [COUNT] * 5
    assert report.rows[1].note == "selects sets, without scores"
    assert report.rows[1].evaluations == 7


def test_curves_and_metrics_are_those_of_the_metrics(
    report: ReportData, model: torch.nn.Module, graphs: list[Data]
) -> None:
    scores = [np.linspace(1, -1, graph.num_nodes) for graph in graphs]
    curve = Judge(model).curve(graphs, scores)
    row = report.rows[2]
    assert row.curve is not None
    assert row.curve.sparsities == SPARSITIES
    assert row.curve["harmonic_fidelity"] == pytest.approx(curve["harmonic_fidelity"], abs=1e-6)
    for place, graph in enumerate(graphs):
        shown = report.graphs[place]
        assert shown.name == "abcd"[place]
        own = evaluate(model, graph, shown.results["given"].selected)
        assert shown.metrics["given"].harmonic_fidelity == pytest.approx(own.harmonic_fidelity)
        assert shown.metrics["given"] == row.graphs[place]


def test_random_selections_are_as_large_as_those_of_explainers(report: ReportData) -> None:
    given, random = report.rows[2].curve, report.rows[3].curve
    assert given is not None
    assert random is not None
    assert random.sparsities == given.sparsities
    assert random["sparsity"] == pytest.approx(given["sparsity"])
    assert random["harmonic_fidelity"] != pytest.approx(given["harmonic_fidelity"])


def test_predictions_and_accuracy_are_the_models(
    report: ReportData, model: torch.nn.Module, graphs: list[Data]
) -> None:
    assert report.accuracy == accuracy(model, graphs)
    for shown, graph in zip(report.graphs, graphs, strict=True):
        with torch.no_grad():
            logits = model(graph.x, graph.edge_index, torch.zeros(len(graph.x), dtype=torch.long))
        assert shown.predicted == int(logits.argmax())
        assert shown.probability == pytest.approx(float(logits.softmax(1).max()), abs=1e-5)
        assert shown.label == int(graph.y)


def test_the_optimum_is_the_highest_row(
    report: ReportData, model: torch.nn.Module, graphs: list[Data]
) -> None:
    best = report.rows[-1]
    assert best.note.endswith(f"proven best for {COUNT} of {COUNT} graphs")
    for row in report.rows[:-1]:
        for own, ceiling in zip(row.graphs, best.graphs, strict=True):
            assert own.harmonic_fidelity <= ceiling.harmonic_fidelity + 1e-6
    size = int(0.3 * graphs[0].num_nodes + 1e-9)
    again = Judge(model).best(graphs[0], size)
    assert best.graphs[0].harmonic_fidelity == pytest.approx(again.evaluation.harmonic_fidelity)


def test_leave_one_out_ranks_the_ground_truth_first(report: ReportData) -> None:
    assert report.rows[0].auroc is not None
    assert report.rows[0].auroc > 0.8
    assert report.rows[1].auroc is None


def test_same_seed_same_numbers(model: torch.nn.Module, graphs: list[Data]) -> None:
    def random_row(seed: int) -> ReportData:
        explainers = {"random": create("random")}
        return build_report(
            Judge(model),
            graphs,
            explainers,
            title="T",
            seed=seed,
            options=ReportOptions(optimum=False),
            progress=False,
        )

    one, same, other = (random_row(seed) for seed in (1, 1, 2))
    assert one.rows[1].graphs == same.rows[1].graphs != other.rows[1].graphs
    assert one.rows[0].graphs == same.rows[0].graphs
    assert (one.graphs[0].results["random"].scores == same.graphs[0].results["random"].scores).all()


def test_the_gallery_can_be_short_and_baselines_left_out(
    model: torch.nn.Module, graphs: list[Data]
) -> None:
    options = ReportOptions(sparsities=[0.6], gallery=1, random_draws=0, optimum=False)
    report = build_report(
        Judge(model),
        graphs,
        {"a": create("leave_one_out")},
        title="T",
        options=options,
        progress=False,
    )
    assert [row.name for row in report.rows] == ["a"]
    assert len(report.graphs) == 1
    assert report.graphs[0].name == graphs[0].smiles
    assert report.rows[0].curve is not None
    assert report.rows[0].curve.sparsities == (0.6, 0.7)


def test_another_class_can_be_explained(model: torch.nn.Module, graphs: list[Data]) -> None:
    options = {"options": ReportOptions(random_draws=0, optimum=False), "progress": False}
    explainers = {"a": create("leave_one_out")}
    zero, one = (
        build_report(Judge(model), graphs, explainers, title="T", target=target, **options)
        for target in (0, 1)
    )
    assert [g.predicted for g in zero.graphs] == [g.predicted for g in one.graphs]
    scores = zip(zero.graphs, one.graphs, strict=True)
    assert all(
        np.allclose(a.results["a"].scores, -b.results["a"].scores, atol=1e-5) for a, b in scores
    )


class Outputs(torch.nn.Module):
    """Several numbers for a graph: sums of features of its nodes."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(8, columns, generator=generator))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: Any = None) -> torch.Tensor:
        batch = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
        count = int(batch.max()) + 1 if len(batch) else 1
        zero = torch.zeros(count, self.weight.shape[1])
        return zero.index_add(0, batch, x @ self.weight)


def test_a_report_on_a_regression(graphs: list[Data]) -> None:
    model = Outputs(1)
    values = [float(model(g.x, g.edge_index).detach()) for g in graphs]
    labeled = [g.clone() for g in graphs]
    for graph, value in zip(labeled, values, strict=True):
        graph.y = torch.tensor([[value + 0.5]])
    labeled[0].y = torch.tensor([[float("nan")]])
    report = build_report(
        Judge(model, task="regression", reference=Reference(range=3.0, mean=0.0)),
        labeled,
        {"loo": create("leave_one_out")},
        title="T",
        output_names=("logP",),
        progress=False,
    )
    assert (report.task, report.explained, report.accuracy) == ("regression", "logP", None)
    assert report.error == pytest.approx(0.5)
    assert [g.value for g in report.graphs] == pytest.approx(values, rel=1e-5)
    assert report.graphs[0].measured is None
    assert report.graphs[1].measured == pytest.approx(values[1] + 0.5)
    assert report.graphs[0].predicted is None
    assert {row.explained for row in report.summaries["loo"]} == {"logP"}
    assert "logP" in report_page(report)


def test_a_report_on_one_of_several_labels(graphs: list[Data]) -> None:
    model = Outputs(2)
    for graph, y in zip(graphs, ([0, 1], [1, float("nan")], [0, 0], [1, 1]), strict=True):
        graph.tasks = torch.tensor([y], dtype=torch.float)
    labeled = [Data(**{**g.to_dict(), "y": g.tasks}) for g in graphs]
    judge = Judge(model, task="multilabel")
    options = {"output_names": ("a", "b"), "progress": False}
    explainers = {"loo": create("leave_one_out")}
    report = build_report(judge, labeled, explainers, title="T", target=1, **options)
    assert (report.task, report.explained) == ("multilabel", "b")
    expected = [float(model(g.x, g.edge_index).detach().sigmoid()[0, 1]) for g in graphs]
    assert [g.probability for g in report.graphs] == pytest.approx(expected, rel=1e-5)
    assert [g.label for g in report.graphs] == [1, None, 0, 1]
    assert {row.explained for row in report.summaries["loo"]} == {"b"}
    with pytest.raises(ValueError, match=r"2 outputs: choose the one to report on"):
        build_report(judge, labeled, explainers, title="T", **options)


def test_the_summary_is_that_of_all_graphs(report: ReportData) -> None:
    assert set(report.summaries) == {"loo", "given"}
    names = {row.name for row in report.summaries["loo"]}
    assert "nitro" in names


def test_what_cannot_be_summarized_is_reported(model: torch.nn.Module, graphs: list[Data]) -> None:
    plain = [Data(x=g.x + 0.5, edge_index=g.edge_index, num_nodes=g.num_nodes) for g in graphs]
    options = {"options": ReportOptions(random_draws=0, optimum=False), "progress": False}
    report = build_report(Judge(model), plain, {"a": create("leave_one_out")}, title="T", **options)
    assert not report.summaries
    assert "needs nodes that say what they are" in report.facts["settings"]["summary"]


def test_random_selections_and_errors_are_kept_for_every_graph(
    model: torch.nn.Module, graphs: list[Data]
) -> None:
    explainers = {"gstarx": create("gstarx", budget=20)}
    report = build_report(
        Judge(model),
        graphs,
        explainers,
        title="T",
        options=ReportOptions(optimum=False),
        progress=False,
    )
    random = report.rows[1]
    assert [g.random for g in report.graphs] == [m.harmonic_fidelity for m in random.graphs]


def test_bad_input_is_refused(model: torch.nn.Module, graphs: list[Data]) -> None:
    table: list[tuple[dict[str, Any], str]] = [
        ({"explainers": {}}, "explainers must name at least one"),
        ({"graphs": []}, "graphs must be at least one"),
        ({"names": ["a"]}, "names must have 4 entries, one per graph"),
        ({"labels": [1]}, "labels must have 4 entries, one per graph"),
        ({"explainers": {"x": [[1]]}}, "results of 'x' must have 4 entries, one per graph"),
        ({"explainers": {"random selection": []}}, "no explainer may be called"),
        ({"options": ReportOptions(sparsity=1.5)}, r"sparsity must lie in \[0, 1\]"),
    ]
    arguments: dict[str, Any] = {"graphs": graphs, "explainers": {"a": create("leave_one_out")}}
    for options, message in table:
        with pytest.raises(ValueError, match=message):
            build_report(Judge(model), title="T", progress=False, **(arguments | options))


def test_an_explainer_that_fails_says_where(model: torch.nn.Module, graphs: list[Data]) -> None:
    class Broken(type(create("leave_one_out"))):  # type: ignore[misc]
        def attribute(self, *args: object, **more: object) -> Attribution:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no") as caught:
        build_report(Judge(model), graphs, {"b": Broken()}, title="T", progress=False)
    assert caught.value.__notes__ == ["while explaining graph 0 with 'b'"]
