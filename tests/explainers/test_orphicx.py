"""OrphicX: its generator, its losses against plain formulas, and what training does."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional
from torch_geometric import explain as pyg
from torch_geometric.data import Data

from gstarx.explainers import with_objects
from gstarx.explainers.edge_masks import Inputs, isolated, seeded
from gstarx.gnn.model_task import ModelTask
from gstarx.models import GCN
from gstarx_bench.explainers.orphicx import OrphicX
from gstarx_bench.explainers.orphicx_generator import (
    Generator,
    GeneratorGraphs,
    Training,
    elbo_loss,
    examples_of,
    information_flow,
)
from gstarx_bench.explainers.trained_files import write_trained
from tests.explainers.small import (
    CLASSES,
    EDGES,
    FEATURES,
    NETWORKS,
    WithoutMessages,
    graph,
    many,
    network,
    unchanged,
    without_edges,
)

CPU = torch.device("cpu")
COLORS = 6
BRIEF: dict[str, Any] = {"epochs": 2, "alphas": 3, "betas": 4, "colors": COLORS}


def brief(**options: Any) -> OrphicX:
    """With options by their plain names."""
    return OrphicX(**with_objects(OrphicX, {**BRIEF, **options}))


def training(model: Any, graphs: list[Data], **options: Any) -> Any:
    made, network = brief(**options), isolated(model)
    with seeded(network, 0):
        examples = examples_of(network, graphs, ModelTask(), COLORS)
        return Training(made.network, made.loss, made.schedule, examples, [])


def seen(name: str) -> GeneratorGraphs:
    return GeneratorGraphs.of(graph(name), COLORS, CPU)


def generator(seed: int = 0) -> Generator:
    torch.manual_seed(seed)
    return Generator(FEATURES + COLORS, latent=6, causal=2)


def adjacency(name: str) -> Tensor:
    n, edges = EDGES[name]
    matrix = torch.zeros(n, n)
    for a, b in edges:
        if a != b:
            matrix[a, b] = matrix[b, a] = 1
    return matrix


def test_colors_beyond_the_columns_share_the_last() -> None:
    features = GeneratorGraphs.of(graph("path"), 2, CPU).features
    assert features[:, FEATURES:].tolist() == [[1, 0], [0, 1], [0, 1], [0, 1], [1, 0]]


def test_the_encoder_is_the_published_formula() -> None:
    model, graphs, a = generator(), seen("loops"), adjacency("loops")
    hidden = (a @ graphs.features @ model.first.weight.T).relu()
    hidden = (a @ hidden @ model.second.weight.T).relu()
    mean, log_std = model.encode(graphs)
    assert torch.allclose(mean, a @ hidden @ model.mean.weight.T, atol=1e-5)
    assert torch.allclose(log_std, a @ hidden @ model.log_std.weight.T, atol=1e-5)


def test_weights_of_edges() -> None:
    model, edges = generator(), graph("path").edge_index
    latent = torch.randn(3, 5, 6)
    weights = model.edge_weights(latent, edges)
    assert weights.shape == (3, 8)
    assert ((weights > 0.5) & (weights < 1)).all()
    assert torch.allclose(weights, model.edge_weights(latent, edges.flip(0)))
    ends = model.decoder(latent[1])
    expected = (ends @ ends.T).sigmoid()[edges[0], edges[1]]
    assert torch.allclose(weights[1], expected, atol=1e-6)
    assert torch.equal(model.causal_part(latent)[..., :2], latent[..., :2])
    assert not model.causal_part(latent)[..., 2:].any()


def _elbo_by_formula(model: Generator, name: str, latent: Tensor) -> Tensor:
    mean, log_std = model.encode(seen(name))
    a, n = adjacency(name), len(latent)
    ends = model.decoder(latent)
    rest = n * n - a.sum()
    reconstruction = functional.binary_cross_entropy_with_logits(
        ends @ ends.T, a + torch.eye(n), pos_weight=rest / a.sum()
    )
    inner = (1 + 2 * log_std - mean**2 - (2 * log_std).exp()).sum(dim=1).mean()
    return n * n / (2 * rest) * reconstruction - 0.5 / n * inner


def test_the_evidence_bound_is_the_published_formula_at_true_sizes() -> None:
    model, names = generator(), ["path", "components", "a loop everywhere"]
    graphs = GeneratorGraphs.union([seen(name) for name in names])
    mean, log_std = model.encode(graphs)
    latent = torch.randn(len(mean), 6)
    parts = torch.split(latent, [EDGES[name][0] for name in names])
    expected = [_elbo_by_formula(model, *pair) for pair in zip(names, parts, strict=True)]
    found = elbo_loss(model, graphs, latent, mean, log_std)
    assert torch.allclose(found, torch.stack(expected).mean(), atol=1e-5)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 4), st.integers(0, 1000))
def test_information_flow_has_its_bounds(a: int, b: int, classes: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    found = information_flow(torch.randn(a, b, classes, generator=draw).mul(5).softmax(dim=-1))
    assert -1e-5 <= float(found) <= math.log(min(a, classes)) + 1e-5


def test_the_flow_has_a_gradient_at_the_decoder() -> None:
    for name in NETWORKS:
        run = training(network(name), many(4))
        run.flow(run.examples[1]).backward()
        for parameter in run.generator.decoder.parameters():
            assert parameter.grad.abs().sum() > 0
        # samples of the prior do not pass through the encoder
        assert run.generator.first.weight.grad is None


def test_the_divergence_has_a_gradient_at_the_encoder() -> None:
    run = training(network("gcn"), many(4))
    _, kl, _, _ = run.terms(run.examples)
    kl.backward()
    assert run.generator.first.weight.grad.abs().sum() > 0


def test_the_flow_is_the_same_in_parts() -> None:
    found = []
    for batch_nodes in (1, 17, 100_000):
        run = training(network("gcn unnormalized"), many(2), batch_nodes=batch_nodes)
        flow = run.flow(run.examples[1])
        flow.backward()
        gradient = run.generator.decoder[0].weight.grad
        found.append((flow.detach(), gradient))
    for flow, gradient in found[:2]:
        assert torch.allclose(flow, found[2][0], atol=1e-6)
        assert torch.allclose(gradient, found[2][1], atol=1e-6)


def test_padding_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, a batch of graphs of all sizes is the mean of each alone."""
    run = training(network("gcn"), many(4))
    monkeypatch.setattr(run, "_normal", lambda *shape: torch.zeros(shape))
    alone = [torch.stack(run.terms([example])) for example in run.examples]
    together = torch.stack(run.terms(run.examples))
    assert torch.allclose(together, torch.stack(alone).mean(dim=0), atol=1e-5)
    assert (together[:3] > 0).all()


def sensitive(data: Data) -> GCN:
    """A network that is undecided about a graph, and turns on how much comes along its edges."""
    torch.manual_seed(1)
    model = GCN(FEATURES, 8, CLASSES, normalize=False, num_layers=2)
    with torch.no_grad():
        model.classifier.weight.mul_(10)
        model.classifier.bias.sub_(model(data.x, data.edge_index)[0])
    return model


def flows(run: Any, generator: Generator) -> tuple[float, float]:
    """The flow from the causal factors, and from the others, from many samples."""
    run.generator = generator
    example = run.examples[0]
    n, latent, causal = 5, run.network.latent, run.network.causal
    draw = torch.Generator().manual_seed(0)
    found = []
    for fixed in (slice(0, causal), slice(causal, latent)):
        drawn = torch.randn(30, 60, n, latent, generator=draw)
        drawn[..., fixed] = drawn[:, :1, :, fixed]
        model = example.model_on(Inputs.copies(example.data, CPU, 30 * 60))
        with torch.no_grad():
            said = run._generated(example, model, drawn.flatten(0, 1))
        found.append(float(information_flow(said.view(30, 60, -1))))
    return found[0], found[1]


def test_information_flows_from_the_causal_factors_after_training() -> None:
    graphs = [graph("path")]
    model = sensitive(graphs[0])
    options = {"epochs": 40, "alphas": 8, "betas": 16, "lr": 0.02, "coef_elbo": 0.0}
    explainer = brief(**options)
    with unchanged(model):
        explainer.fit(model, graphs, validation=[], seed=0)
    assert explainer.trained is not None
    run = training(model, graphs)
    before, _ = flows(run, run.generator)
    after, others = flows(run, explainer.trained)
    assert after > 100 * before
    assert after > 10 * others
    history = [epoch.flow for epoch in explainer.history]
    assert np.mean(history[-5:]) > 10 * np.mean(history[:5])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("gcn", "path"),
        ("gcn unnormalized", "loops"),
        ("gin", "a loop everywhere"),
        ("gat", "components"),
        ("gat", "loops"),
        ("gcn", "components"),
    ],
)
def test_every_network_and_graph(name: str, shape: str) -> None:
    model, data = network(name), graph(shape)
    with unchanged(model):
        explainer = brief().fit(model, many(6))
        found = explainer.explain(model, data, seed=0)
        again = explainer.explain(model, data, seed=1)
    # at the means: nothing is drawn
    assert np.array_equal(found.node_scores, again.node_scores)
    assert found.target == int(model.eval()(data.x, data.edge_index).argmax())
    loops = data.edge_index[0] == data.edge_index[1]
    mask = found.edge_mask
    assert (mask[loops] == 0).all()
    assert (mask[~loops] >= 0.5).all()
    joined = data.edge_index[:, ~loops].unique()
    alone = np.setdiff1d(np.arange(data.num_nodes), joined)
    assert (found.node_scores[alone] == 0).all()
    assert (found.node_scores[joined] >= 0.5).all()


def weights_of(explainer: OrphicX) -> Tensor:
    assert explainer.trained is not None
    return torch.cat([p.reshape(-1) for p in explainer.trained.parameters()])


def test_the_same_seed_gives_the_same_weights() -> None:
    model, graphs = network("gcn"), many(6)
    first, second, other = (brief().fit(model, graphs, seed=s) for s in (1, 1, 2))
    assert torch.equal(weights_of(first), weights_of(second))
    assert first.history == second.history
    assert not torch.equal(weights_of(first), weights_of(other))


def test_training_can_be_on_some_of_the_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def counted(network: Any, graphs: list[Data], *rest: Any) -> Any:
        counts.append(len(graphs))
        return examples_of(network, graphs, *rest)

    monkeypatch.setattr("gstarx_bench.explainers.orphicx.examples_of", counted)
    model, graphs = network("gcn"), many(9)
    for most in (4, 9, 100):
        brief(max_graphs=most).fit(model, graphs)
    assert counts == [4, 9, len(graphs)]
    few = [brief(max_graphs=4).fit(model, graphs, seed=s) for s in (1, 1)]
    assert torch.equal(*map(weights_of, few))


def test_the_best_epoch_counts() -> None:
    model, graphs = network("gcn"), many(8)
    options = {"lr": 0.3}
    long = brief(**options, epochs=12).fit(model, graphs, seed=0)
    losses = [epoch.validation_loss for epoch in long.history]
    best = int(np.argmin(losses))
    assert best < 11, "choose another seed: the last epoch is the best"
    short = brief(**options, epochs=best + 1).fit(model, graphs, seed=0)
    assert torch.equal(weights_of(long), weights_of(short))


def test_training_ends_when_nothing_gets_better() -> None:
    nothing = {f"coef_{term}": 0.0 for term in ("elbo", "kl", "flow", "size")}
    options = {**BRIEF, **nothing, "epochs": 20, "patience": 3}
    explainer = brief(**options).fit(network("gcn"), many(6))
    # the first epoch, and three that are no better
    assert len(explainer.history) == 4


def test_validation_graphs_can_be_given() -> None:
    model, graphs = network("gcn"), many(6)
    given_some = brief().fit(model, graphs, validation=graphs[:2])
    given_none = brief().fit(model, graphs, validation=[])
    assert all(epoch.validation_loss == epoch.loss for epoch in given_none.history)
    assert all(epoch.validation_loss != epoch.loss for epoch in given_some.history)


def test_the_size_term_makes_weights_smaller() -> None:
    model, graphs = network("gcn"), many(4)
    only = {"coef_elbo": 0.0, "coef_kl": 0.0, "coef_flow": 0.0, "coef_size": 1.0}
    options = {**BRIEF, **only, "epochs": 15, "lr": 0.05}
    history = brief(**options).fit(model, graphs, validation=[]).history
    assert history[-1].size < history[0].size - 0.02


def test_a_graph_without_edges_scores_nothing() -> None:
    for n in (
        1,
        3,
    ):
        model = network("gcn")
        found = brief().fit(model, many(2)).explain(model, without_edges(n))
        assert found.node_scores.tolist() == [0] * n


def test_inside_pygs_explainer() -> None:
    model, data = network("gcn").eval(), graph("components")
    algorithm = brief().fit(model, many(4))
    explainer = pyg.Explainer(
        model,
        algorithm=algorithm,
        explanation_type="model",
        node_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
    )
    with unchanged(model):
        found = explainer(data.x, data.edge_index)
    expected = algorithm.explain(model, data).node_scores
    assert found.node_mask[:, 0].tolist() == pytest.approx(expected.tolist())


def test_saved_and_loaded_it_says_the_same(tmp_path: Path) -> None:
    model, data, path = network("gcn"), graph("path"), tmp_path / "orphicx.safetensors"
    explainer = brief(latent=5, causal=3, reduce="mean").fit(model, many(3))
    explainer.save(path)
    loaded = OrphicX.load(path)
    for group in ("network", "loss", "schedule", "reduce"):
        assert getattr(loaded, group) == getattr(explainer, group)
    expected = explainer.explain(model, data).node_scores
    assert np.array_equal(loaded.explain(model, data).node_scores, expected)
    write_trained(path, "OrphicX", {"latent": 4, "causal": 2}, load_file(path))
    with pytest.raises(ValueError, match="does not hold a trained OrphicX"):
        OrphicX.load(path)
    save_file(load_file(path), path, metadata={"gstarx": json.dumps({"format": 1})})
    with pytest.raises(ValueError, match="must hold a trained OrphicX"):
        OrphicX.load(path)


def test_untrained_or_trained_on_something_else_it_refuses() -> None:
    explainer = brief()
    assert explainer.requires_training
    with pytest.raises(RuntimeError, match=r"has to be trained before it can explain: call fit"):
        explainer.explain(network("gcn"), graph("path"))
    with pytest.raises(RuntimeError, match="before it can be saved"):
        explainer.save("anywhere.safetensors")
    explainer.fit(network("gcn"), many(2))
    other = Data(x=torch.ones(3, 7), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match=r"graphs with 4 features \(got 7\)"):
        explainer.explain(GCN(7, 4, 2), other)


def test_models_that_it_cannot_be_trained_on() -> None:
    with pytest.raises(ValueError, match=r"OrphicX weighs messages.*WithoutMessages"):
        brief().fit(WithoutMessages(), many(2))

    class Alone(GCN):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return super().forward(x, edge_index)

    with pytest.raises(ValueError, match="the model must take batch"):
        brief().fit(Alone(FEATURES, 4, 2), many(2))
    with pytest.raises(ValueError, match="learns from edges"):
        brief().fit(network("gcn"), [without_edges(2)])
    for task in ({"mode": "regression"}, {"task_level": "node"}):
        with pytest.raises(ValueError, match="explains classes of graphs"):
            brief().fit(network("gcn"), many(2), task=task)


def test_settings_out_of_range() -> None:
    for options, message in (
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"alphas": 0}, "alphas must be at least 1"),
        ({"max_graphs": 0}, "max_graphs must be at least 1"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"coef_kl": -1.0}, "coef_kl must be at least 0"),
        ({"causal": 16}, r"causal must be below latent, which is 16 \(got 16\)"),
        ({"reduce": "min"}, "reduce must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            brief(**options)
