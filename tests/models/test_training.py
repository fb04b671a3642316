"""Training: what it computes, that it repeats itself, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.loader import DataLoader

from gstarx.models import GAT, GCN, GIN, Network, digest
from gstarx_bench.models import TrainingResult, TrainingSettings, accuracy, recipe, train
from gstarx_bench.models.recipes import GENERAL
from gstarx_bench.models.training import Epoch, _batches
from tests.models.small import BRIEF, nodes, rings
from tests.shared import mutag


def quiet(model: Any, dataset: Any, **options: Any) -> TrainingResult:
    return train(model, dataset, **{"settings": BRIEF, "progress": False, **options})


def gcn(**options: Any) -> GCN:
    torch.manual_seed(5)
    return GCN(3, 8, 2, **options)


@pytest.mark.parametrize("network", [GCN, GIN, GAT])
def test_every_network_learns(network: type[Network]) -> None:
    torch.manual_seed(0)
    model = network(in_channels=3, hidden_channels=8, out_channels=2)
    dataset = rings(120)
    result = quiet(model, dataset, settings=replace(BRIEF, epochs=25))
    assert result.accuracy["train"] > 0.9
    assert result.accuracy["test"] > 0.8
    assert type(result.model) is network
    assert not any(module.training for module in result.model.modules())
    assert all(p.requires_grad for p in result.model.parameters())
    assert result.history[-1].train_loss < result.history[0].train_loss
    for split, found in result.accuracy.items():
        assert found == accuracy(result.model, dataset.split(split))
    assert set(result.accuracy) == {"train", "val", "test"}
    assert result.seconds > 0
    assert (result.seed, result.settings.epochs) == (0, 25)


def test_it_is_adam_on_the_clipped_cross_entropy() -> None:
    """The same by hand, with PyG's loader, for a batch that holds everything."""
    dataset, model = rings(), gcn()
    settings = TrainingSettings(0.03, 0.01, batch_size=100, epochs=4, clip=0.004)
    result = quiet(model, dataset, settings=settings)
    other = gcn()
    optimizer = torch.optim.Adam(other.parameters(), lr=0.03, weight_decay=0.01)
    (batch,) = DataLoader(dataset.split("train"), batch_size=100)
    losses, weights, best = [], [], []
    clipped = False
    for _ in range(4):
        optimizer.zero_grad()
        loss = functional.cross_entropy(other(batch.x, batch.edge_index, batch.batch), batch.y)
        loss.backward()
        for p in other.parameters():
            assert p.grad is not None
            clipped |= bool((p.grad.abs() > 0.004).any())
            p.grad.clamp_(-0.004, 0.004)
        optimizer.step()
        losses.append(float(loss.detach()))
        weights.append({name: t.clone() for name, t in other.state_dict().items()})
        best.append(accuracy(other, dataset.split("val")))
    assert clipped
    assert [e.train_loss for e in result.history] == pytest.approx(losses, rel=1e-4)
    assert [e.val_score for e in result.history] == best
    for name, tensor in result.model.state_dict().items():
        torch.testing.assert_close(tensor, weights[result.best_epoch][name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("network", [GCN, GIN])
def test_the_same_seed_gives_the_same_weights(network: type[Network]) -> None:
    torch.manual_seed(0)
    model = network(in_channels=3, hidden_channels=8, out_channels=2)
    first = quiet(model, rings(), seed=3)
    torch.rand(7)
    again = quiet(model, rings(), seed=3)
    other = quiet(model, rings(), seed=4)
    assert first.history == again.history
    assert digest(first.model) == digest(again.model)
    assert digest(first.model) != digest(other.model)
    assert first.history != other.history


def test_a_name_stands_for_the_network_of_the_recipe() -> None:
    dataset = rings(name="ba_2motifs")
    settings = recipe("ba_2motifs", "gcn", epochs=1).settings
    first = train("gcn", dataset, seed=1, settings=settings, progress=False)
    assert first.model.config == GCN(3, 20, 2, normalize=False).config
    torch.rand(3)
    again = train("gcn", dataset, seed=1, settings=settings, progress=False)
    other = train("gcn", dataset, seed=2, settings=settings, progress=False)
    assert digest(first.model) == digest(again.model) != digest(other.model)


def test_settings_are_those_of_the_recipe() -> None:
    dataset = rings(16, name="sst2")
    for model in ("gat", GAT(3, 2, 2)):
        result = train(model, dataset, progress=False)
        assert result.settings == recipe("sst2", "gat").settings
        assert len(result.history) == 8


def test_graphs_of_ones_own_need_no_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(GENERAL["gcn"], settings=TrainingSettings(epochs=2))
    monkeypatch.setitem(GENERAL, "gcn", short)
    by_name = train("gcn", rings(), progress=False)
    assert by_name.model.config == GCN(3, 128, 2, readout="max").config

    class Mine(GCN):
        """A network that no recipe is for."""

    assert train(Mine(3, 8, 2), rings(), progress=False).settings == short.settings


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_else_is_changed(fails: bool) -> None:
    model, dataset = gcn(), rings()
    model.convs[0].eval()
    before, modes = digest(model), [module.training for module in model.modules()]
    content = dataset.digest
    state = torch.get_rng_state()
    if fails:
        dataset.graphs[0].x[0, 0] = torch.nan
        with pytest.raises(FloatingPointError, match=r"not finite in epoch 0: lower learning_rate"):
            quiet(model, dataset)
    else:
        quiet(model, dataset, seed=9)
        assert rings().digest == content
        quiet("gcn", rings(name="mutag"))
    assert digest(model) == before
    assert [module.training for module in model.modules()] == modes
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)


class Drowsy(nn.Module):
    """Uses torch's own random numbers in training."""

    def __init__(self) -> None:
        super().__init__()
        self.net = gcn()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Any:
        return self.net(functional.dropout(x, 0.5, self.training), edge_index, batch)


def test_dropout_is_seeded_too() -> None:
    first = quiet(Drowsy(), rings(), seed=1)
    torch.rand(5)
    assert quiet(Drowsy(), rings(), seed=1).history == first.history


class Scripted(nn.Module):
    """A model that does on the validation graphs what is written down for it."""

    def __init__(self, accuracies: list[float], losses: list[float]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("epoch", torch.tensor(-1))
        self.accuracies, self.losses = accuracies, losses

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        count = int(batch.max()) + 1
        if self.training:
            self.epoch += 1
        # labels alternate; the right class wins by so much that the loss is as scripted
        k = int(self.epoch)
        wins = torch.arange(count) < round(self.accuracies[k] * count)
        label = torch.arange(count) % 2
        right = functional.one_hot(torch.where(wins, label, 1 - label), 2).float()
        return right * self.losses[k] + self.weight * 0


@pytest.mark.parametrize(
    ("accuracies", "losses", "best"),
    [
        ([0.5, 0.9, 0.7, 0.9], [1.0, 1.0, 1.0, 1.0], 1),  # strictly better only
        ([0.8, 0.8, 0.8, 0.8], [1.0, 0.5, 1.5, 1.5], 2),  # among equals, the lower loss
        ([0.8, 0.7, 0.7, 0.7], [0.1, 4.0, 4.0, 4.0], 0),  # a lower loss alone is not enough
        ([0.1, 0.2, 0.3, 0.4], [1.0, 1.0, 1.0, 1.0], 3),
    ],
)
def test_the_best_epoch(accuracies: list[float], losses: list[float], best: int) -> None:
    model = Scripted(accuracies, losses)
    settings = TrainingSettings(batch_size=100, epochs=4)
    result = quiet(model, rings(), settings=settings)
    assert [e.val_score for e in result.history] == accuracies
    assert result.best_epoch == best
    assert int(result.model.epoch) == best  # type: ignore[arg-type]
    assert result.accuracy["val"] == accuracies[best]


def test_patience_counts_epochs_without_a_better_one() -> None:
    accuracies = [0.5, 0.6, 0.6, 0.6, 0.7, 0.1, 0.2, 0.3, 0.9, 0.9]
    model = Scripted(accuracies, [1.0] * 10)
    settings = TrainingSettings(batch_size=100, epochs=10, patience=3)
    result = quiet(model, rings(), settings=settings)
    assert len(result.history) == 8
    assert result.best_epoch == 4
    result = quiet(model, rings(), settings=replace(settings, patience=4))
    assert (len(result.history), result.best_epoch) == (10, 8)
    result = quiet(model, rings(), settings=replace(settings, patience=2))
    assert (len(result.history), result.best_epoch) == (4, 1)
    result = quiet(model, rings(), settings=replace(settings, patience=None))
    assert (len(result.history), result.best_epoch) == (10, 8)


def test_better() -> None:
    epoch = Epoch(0, 1.0, 0.5, 0.8)
    assert epoch.better_than(None)
    assert not epoch.better_than(epoch)
    assert Epoch(1, 9.0, 0.4, 0.8).better_than(epoch)
    assert Epoch(1, 0.0, 0.9, 0.9).better_than(epoch)
    assert not Epoch(1, 0.0, 0.1, 0.7).better_than(epoch)
    assert not Epoch(1, 0.0, float("nan"), 0.8).better_than(epoch)


def test_labels_of_nodes() -> None:
    dataset = nodes()
    torch.manual_seed(0)
    model = GCN(2, 8, 2, num_layers=1, readout=None)
    settings = TrainingSettings(0.05, batch_size=1, epochs=60)
    result = quiet(model, dataset, settings=settings)
    # the labels of the test nodes are the wrong way round, so it must not have seen them
    assert result.accuracy["train"] > 0.85
    assert result.accuracy["val"] > 0.75
    assert result.accuracy["test"] < 0.4
    for split in ("train", "val", "test"):
        expected = accuracy(result.model, dataset.graphs, mask=f"{split}_mask")
        assert result.accuracy[split] == expected


def test_every_training_graph_is_seen_once_in_an_epoch_in_another_order() -> None:
    seen: list[list[float]] = []

    class Watcher(GCN):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Any = None, **_: Any) -> Any:
            if self.training:
                seen.append([float(x[batch == i][0, 1]) for i in range(int(batch.max()) + 1)])
            return super().forward(x, edge_index, batch)

    dataset = rings()
    quiet(Watcher(3, 4, 2), dataset, settings=replace(BRIEF, epochs=3, batch_size=8))
    assert [len(batch) for batch in seen] == [8, 8, 4] * 3
    epochs = [sum(seen[i : i + 3], []) for i in (0, 3, 6)]  # noqa: RUF017
    expected = sorted(float(g.x[0, 1]) for g in dataset.split("train"))
    assert [sorted(epoch) for epoch in epochs] == [expected] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_a_remainder_of_one_joins_the_batch_before() -> None:
    for count, size, expected in (
        (20, 8, [8, 8, 4]),
        (17, 8, [8, 9]),
        (1, 8, [1]),
        (3, 1, [1, 1, 1]),
        (3, 2, [3]),
    ):
        batches = _batches(torch.arange(count), size)
        assert [len(batch) for batch in batches] == expected
        assert torch.equal(torch.cat(batches), torch.arange(count))


def test_a_split_without_test_graphs() -> None:
    split = {"train": list(range(20)), "val": list(range(20, 40))}
    assert set(quiet(gcn(), rings(split_indices=split)).accuracy) == {"train", "val"}


@pytest.mark.parametrize("missing", ["train", "val"])
def test_splits_that_are_empty(missing: str) -> None:
    split: dict[str, list[int]] = {"train": [0, 1], "val": [2, 3], "test": [4]}
    split[missing] = []
    with pytest.raises(ValueError, match=rf"rings must have graphs in split '{missing}' \(got no"):
        quiet(gcn(), rings(split_indices=split))
    dataset = nodes()
    dataset.graphs[0][f"{missing}_mask"][:] = False
    with pytest.raises(ValueError, match=rf"nodes must have nodes in {missing}_mask \(got none"):
        quiet(GCN(2, 4, 2, readout=None), dataset)
    del dataset.graphs[0][f"{missing}_mask"]
    with pytest.raises(ValueError, match=rf"nodes must have nodes in {missing}_mask \(got none"):
        quiet(GCN(2, 4, 2, readout=None), dataset)


@pytest.mark.parametrize("label", [-1, 2])
def test_labels_that_are_no_class(label: int) -> None:
    dataset = rings()
    dataset.graphs[7].y[0] = label
    with pytest.raises(ValueError, match=rf"labels must be in 0\.\.1 \(got {label}\)"):
        quiet(gcn(), dataset)


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"in_channels of the model must be 3, .* \(got 4\)"):
        quiet(GCN(4, 8, 2), rings())
    with pytest.raises(ValueError, match=r"out_channels .* at least 2, the number .* \(got 1\)"):
        quiet(GCN(3, 8, 1), rings())
    with pytest.raises(ValueError, match="at least one graph"):
        quiet(gcn(), rings(graphs=()))
    with pytest.raises(ValueError, match="labels are those of 8 graphs"):
        quiet(gcn(readout=None), rings())


def test_networks_that_are_not_there() -> None:
    with pytest.raises(ValueError, match=r"one of 'gcn', 'gin', 'gat', or a model \(got 'rnn'\)"):
        quiet("rnn", rings())


def test_a_bar_is_shown_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    quiet(gcn(), rings())
    assert capsys.readouterr().err == ""
    quiet(gcn(), rings(), progress=True)
    shown = capsys.readouterr().err
    assert "training: 100%" in shown
    assert "18/18" in shown
    assert "val=" in shown


def test_mutag_is_learnt() -> None:
    dataset = mutag()
    settings = recipe("mutag", "gcn", epochs=25).settings
    result = train("gcn", dataset, settings=settings, progress=False)
    assert result.model.config["hidden_channels"] == 128
    assert result.accuracy["train"] > 0.7
    assert result.accuracy["val"] > 0.7
