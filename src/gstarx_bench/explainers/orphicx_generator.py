"""The generator of OrphicX: the network, the terms of its loss, and its training on many graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_batch

from gstarx._internal.progress import tqdm
from gstarx.explainers.edge_masks import (
    Inputs,
    PlainModel,
    check_features,
)
from gstarx.gnn import ModelTask, Signature, check_data, model_device, require_classes
from gstarx.graphs import color_refinement

#: The largest logarithm of a standard deviation, so that its exponential stays finite.
_LOG_STD_LIMIT = 10.0
_TINY = 1e-8


@dataclass(frozen=True)
class GeneratorGraphs:
    """Graphs as the generator sees them, one after the other.

    Attributes
    ----------
    features
        Features and one-hot colors of all nodes, (N, F + colors).
    pairs
        Both directions of every edge once, no self-loops, (2, P).
    owner
        The graph of every node, ascending, (N,).
    """

    features: Tensor
    pairs: Tensor
    owner: Tensor

    @classmethod
    def of(cls, data: Data, colors: int, device: torch.device) -> Self:
        """One graph. Colors beyond the number of columns share the last column."""
        ends = data.edge_index.cpu().numpy().astype(np.int64)
        n = int(data.num_nodes or 0)
        labels = torch.from_numpy(color_refinement(ends, n)).clamp(max=colors) - 1
        joined = ends[:, ends[0] != ends[1]]
        keys = np.unique(np.concatenate([joined[0] * n + joined[1], joined[1] * n + joined[0]]))
        one_hot = functional.one_hot(labels, colors).float()
        return cls(
            torch.cat([data.x.cpu().float(), one_hot], dim=1).to(device),
            torch.from_numpy(np.stack(np.divmod(keys, n))).to(device),
            torch.zeros(n, dtype=torch.long, device=device),
        )

    @classmethod
    def union(cls, graphs: Sequence[GeneratorGraphs]) -> Self:
        """Several graphs, each given as one."""
        sizes = torch.tensor([len(graph.owner) for graph in graphs])
        first = (sizes.cumsum(0) - sizes).tolist()
        return cls(
            torch.cat([graph.features for graph in graphs]),
            torch.cat([g.pairs + at for g, at in zip(graphs, first, strict=True)], dim=1),
            torch.cat([g.owner + place for place, g in enumerate(graphs)]),
        )


class Generator(nn.Module):
    """A variational graph auto-encoder with a latent vector per node, the first part of it causal.

    Parameters
    ----------
    in_channels
        Width of the features with their one-hot colors.
    hidden_channels
        Width of the two hidden layers of the encoder.
    latent, causal
        Width of the latent vectors, and of their causal part.
    decoder_channels
        Width of the two layers of the decoder.
    """

    def __init__(
        self,
        in_channels: int,
        *,
        hidden_channels: int = 32,
        latent: int = 16,
        causal: int = 8,
        decoder_channels: int = 16,
    ) -> None:
        super().__init__()
        self.causal = causal
        self.latent = latent
        self.first = nn.Linear(in_channels, hidden_channels, bias=False)
        self.second = nn.Linear(hidden_channels, hidden_channels, bias=False)
        self.mean = nn.Linear(hidden_channels, latent, bias=False)
        self.log_std = nn.Linear(hidden_channels, latent, bias=False)
        for layer in (self.first, self.second, self.mean, self.log_std):
            nn.init.xavier_uniform_(layer.weight)
        self.decoder = nn.Sequential(
            nn.Linear(latent, decoder_channels),
            nn.ReLU(),
            nn.Linear(decoder_channels, decoder_channels),
            nn.Sigmoid(),
        )

    def encode(self, graphs: GeneratorGraphs) -> tuple[Tensor, Tensor]:
        """Means and logarithms of standard deviations of the latent vectors, (N, latent) each."""
        hidden = _sum_around(self.first(graphs.features), graphs.pairs).relu()
        hidden = _sum_around(self.second(hidden), graphs.pairs).relu()
        log_std = _sum_around(self.log_std(hidden), graphs.pairs).clamp(max=_LOG_STD_LIMIT)
        return _sum_around(self.mean(hidden), graphs.pairs), log_std

    def causal_part(self, latent: Tensor) -> Tensor:
        """Latent vectors with the part that is not causal set to 0."""
        return functional.pad(latent[..., : self.causal], (0, self.latent - self.causal))

    def edge_logits(self, latent: Tensor, edges: Tensor) -> Tensor:
        """Logits of edges (2, M) between nodes with latent vectors (..., N, latent): (..., M).

        Each is a product of vectors of numbers between 0 and 1, and so never negative.
        """
        ends = self.decoder(latent)
        products = ends.index_select(-2, edges[0]) * ends.index_select(-2, edges[1])
        logits: Tensor = products.sum(dim=-1)
        return logits

    def edge_weights(self, latent: Tensor, edges: Tensor) -> Tensor:
        """Probabilities of edges, as for :meth:`edge_logits`: at least 0.5."""
        return self.edge_logits(latent, edges).sigmoid()


def _sum_around(values: Tensor, pairs: Tensor) -> Tensor:
    """The sum over the neighbors of every node: the adjacency matrix times the values."""
    return torch.zeros_like(values).index_add(0, pairs[1], values[pairs[0]])


def elbo_loss(
    generator: Generator, graphs: GeneratorGraphs, latent: Tensor, mean: Tensor, log_std: Tensor
) -> Tensor:
    """The negative evidence lower bound of the auto-encoder, the mean over the graphs.

    For a graph of n nodes with adjacency matrix A, ``c * BCE(logits, A + I, w) + KL / n`` with
    positive entries weighing ``w = (n² - ΣA) / ΣA`` and ``c = n² / 2(n² - ΣA)``. Every graph counts
    with its true size.
    """
    vectors, there = to_dense_batch(generator.decoder(latent), graphs.owner)
    sizes = there.sum(dim=1)
    first = sizes.cumsum(0) - sizes
    owner = graphs.owner[graphs.pairs[0]]
    inside = graphs.pairs - first[owner]
    adjacency = vectors.new_zeros(len(sizes), there.shape[1], there.shape[1])
    adjacency[owner, inside[0], inside[1]] = 1.0
    edges, squares = adjacency.sum(dim=(1, 2)), sizes.to(vectors.dtype) ** 2
    losses = functional.binary_cross_entropy_with_logits(
        vectors @ vectors.transpose(1, 2),
        adjacency + torch.eye(there.shape[1], device=adjacency.device),
        pos_weight=((squares - edges) / edges)[:, None, None],
        reduction="none",
    )
    both = there[:, :, None] & there[:, None, :]
    reconstruction = (losses * both).sum(dim=(1, 2)) / (2 * (squares - edges))
    divergences = -0.5 * (1 + 2 * log_std - mean**2 - (2 * log_std).exp()).sum(dim=1)
    per_graph = mean.new_zeros(len(sizes)).index_add(0, graphs.owner, divergences) / squares
    loss: Tensor = (reconstruction + per_graph).mean()
    return loss


def information_flow(probabilities: Tensor) -> Tensor:
    r"""The information that flows from causal factors to the class, in nats.

    :math:`I = \frac{1}{A} \sum_a \sum_c p_a(c) \log p_a(c) - \sum_c q(c) \log q(c)` where
    :math:`p_a` is the mean over the samples of everything else and :math:`q` the mean of all.

    Parameters
    ----------
    probabilities
        Of every class, for A samples of the causal factors and B of the others, (A, B, classes).

    Examples
    --------
    >>> decided = torch.eye(2)[:, None].repeat(1, 3, 1)
    >>> information_flow(decided), information_flow(decided.transpose(0, 1))
    (tensor(0.6931), tensor(0.))
    """
    conditional = probabilities.mean(dim=1)
    overall = conditional.mean(dim=0)
    inside = (conditional * (conditional + _TINY).log()).sum(dim=1).mean()
    return inside - (overall * (overall + _TINY).log()).sum()


@dataclass(frozen=True, kw_only=True)
class OrphicXNetwork:
    """The sizes of OrphicX's generator.

    Attributes
    ----------
    latent, causal
        Width of the latent vectors, and of their causal part.
    colors
        Columns for the structural labels of nodes.
    hidden_channels, decoder_channels
        Widths of encoder and decoder.
    """

    latent: int = 16
    causal: int = 8
    colors: int = 100
    hidden_channels: int = 32
    decoder_channels: int = 16

    def __post_init__(self) -> None:
        _check_counts(self)
        if self.causal >= self.latent:
            raise ValueError(
                f"causal must be below latent, which is {self.latent} (got {self.causal})"
            )

    def generator(self, features: int) -> Generator:
        """A new generator for graphs with ``features`` features."""
        sizes = asdict(self)
        return Generator(features + sizes.pop("colors"), **sizes)


@dataclass(frozen=True, kw_only=True)
class OrphicXLoss:
    """What OrphicX minimizes.

    Attributes
    ----------
    coef_elbo, coef_kl, coef_flow, coef_size
        Weights of the terms.
    alphas, betas
        Samples of causal factors, and for each of them samples of the other factors.
    flow_graphs
        Graphs of a batch for which the information flow is estimated.
    batch_nodes
        How many nodes go through the model at once, of the ``alphas * betas`` copies of a graph.
    """

    coef_elbo: float = 0.01
    coef_kl: float = 0.01
    coef_flow: float = 1.0
    coef_size: float = 0.0
    alphas: int = 25
    betas: int = 100
    flow_graphs: int = 1
    batch_nodes: int = 2_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name.startswith("coef_") and not value >= 0:
                raise ValueError(f"{name} must be at least 0 (got {value!r})")
        _check_counts(self)

    def of(self, terms: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
        """What is minimized, from the evidence bound, divergence, size and information flow."""
        elbo, kl, size, flow = terms
        return (
            self.coef_elbo * elbo
            + self.coef_kl * kl
            + self.coef_size * size
            - self.coef_flow * flow
        )


@dataclass(frozen=True, kw_only=True)
class OrphicXSchedule:
    """How OrphicX's generator is trained.

    Attributes
    ----------
    epochs, lr, batch_size
        Of Adam, on graphs in random order.
    patience
        Epochs without a better validation loss after which training ends. The best epoch is kept.
    max_graphs
        Train on at most this many graphs, drawn at random; by default on all.
    """

    epochs: int = 300
    lr: float = 0.01
    batch_size: int = 128
    patience: int = 100
    max_graphs: int | None = None

    def __post_init__(self) -> None:
        _check_counts(self)
        if not self.lr > 0:
            raise ValueError(f"lr must be positive (got {self.lr!r})")


def _check_counts(settings: Any) -> None:
    for name, value in asdict(settings).items():
        if isinstance(value, int) and value < 1:
            raise ValueError(f"{name} must be at least 1 (got {value!r})")


@dataclass(frozen=True)
class OrphicXEpoch:
    """One epoch of the training: means over its batches.

    Attributes
    ----------
    loss
        What is minimized.
    elbo, kl, size
        Terms of it, without their weights.
    flow
        The information flow from the causal factors to the predictions.
    validation_loss
        The loss on the validation graphs, with the same random numbers in every epoch.
    """

    loss: float
    elbo: float
    kl: float
    size: float
    flow: float
    validation_loss: float


@dataclass(frozen=True)
class Example:
    """A graph to train on, as the model and as the generator see it."""

    network: Any
    signature: Signature
    task: ModelTask
    data: Data
    graph: GeneratorGraphs
    log_probabilities: Tensor

    def model_on(self, inputs: Inputs) -> PlainModel:
        """The model on other graphs of the same kind, such as copies of this one."""
        return PlainModel(self.network, self.signature, inputs, self.task, "log_prob")


def examples_of(
    network: Any, graphs: Iterable[Data], task: ModelTask, colors: int
) -> list[Example]:
    """Graphs with edges, and the model's prediction for each."""
    check_graph_classes(task)
    examples = []
    for graph in graphs:
        data = check_data(graph)
        task.require_pairs(data)
        device = model_device(network, check_features(data, "OrphicX").device)
        if not bool((data.edge_index[0] != data.edge_index[1]).any()):
            continue
        signature = Signature.of(network, data, task.keywords)
        if not signature.takes_batch:
            raise ValueError(
                "OrphicX puts many graphs through the model at once: the model must take batch"
            )
        model = PlainModel(network, signature, Inputs.copies(data, device), task, "log_prob")
        with torch.no_grad():
            log_probabilities = model(model.inputs.fields["x"])
        require_classes(model.width, task.mode)
        seen = GeneratorGraphs.of(data, colors, device)
        examples.append(Example(network, signature, task, data, seen, log_probabilities))
    return examples


class Training:
    """The state of a training: the generator, its optimizer, random numbers, the best so far."""

    def __init__(
        self,
        network: OrphicXNetwork,
        loss: OrphicXLoss,
        schedule: OrphicXSchedule,
        examples: Sequence[Example],
        held: Sequence[Example],
    ) -> None:
        self.network, self.loss, self.schedule = network, loss, schedule
        self.examples, self.held = examples, held
        self.device = examples[0].graph.features.device
        width = examples[0].graph.features.shape[1] - network.colors
        self.generator = network.generator(width).to(self.device)
        self.optimizer = torch.optim.Adam(self.generator.parameters(), lr=schedule.lr)
        self.best = self.generator
        self.draw = torch.Generator().manual_seed(torch.initial_seed() % 2**63)

    def epochs(self, *, progress: bool) -> Iterator[OrphicXEpoch]:
        """Train until patience runs out or all epochs are done."""
        lowest, waited = float("inf"), 0
        with tqdm(total=self.schedule.epochs, desc="OrphicX", disable=not progress) as bar:
            for _ in range(self.schedule.epochs):
                epoch = self._epoch()
                yield epoch
                bar.update()
                bar.set_postfix(loss=epoch.validation_loss, flow=epoch.flow)
                waited += 1
                if epoch.validation_loss < lowest:
                    lowest, waited = epoch.validation_loss, 0
                    self.best = deepcopy(self.generator)
                if waited >= self.schedule.patience:
                    return

    def _epoch(self) -> OrphicXEpoch:
        order = torch.randperm(len(self.examples), generator=self.draw).tolist()
        rows = []
        for begin in range(0, len(order), self.schedule.batch_size):
            batch = [self.examples[i] for i in order[begin : begin + self.schedule.batch_size]]
            terms = self.terms(batch)
            self.optimizer.zero_grad()
            self.loss.of(terms).backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(self.generator.parameters(), 1.0)
            self.optimizer.step()
            rows.append(torch.stack([self.loss.of(terms), *terms]).detach())
        loss, elbo, kl, size, flow = torch.stack(rows).mean(dim=0).tolist()
        held = loss if not self.held else self._validate()
        return OrphicXEpoch(loss, elbo, kl, size, flow, held)

    def _validate(self) -> float:
        """The loss on the validation graphs, always with the same random numbers."""
        with torch.no_grad(), self._fixed_draws():
            losses = []
            for begin in range(0, len(self.held), self.schedule.batch_size):
                batch = self.held[begin : begin + self.schedule.batch_size]
                losses.append(float(self.loss.of(self.terms(batch))))
        return sum(losses) / len(losses)

    @contextmanager
    def _fixed_draws(self) -> Iterator[None]:
        going, self.draw = self.draw, torch.Generator().manual_seed(0)
        try:
            yield
        finally:
            self.draw = going

    def terms(self, batch: Sequence[Example]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The terms of the loss on a batch of graphs."""
        graphs = GeneratorGraphs.union([example.graph for example in batch])
        mean, log_std = self.generator.encode(graphs)
        latent = mean + log_std.exp() * self._normal(*mean.shape)
        elbo = elbo_loss(self.generator, graphs, latent, mean, log_std)
        inputs = Inputs.union([example.data for example in batch], batch[0].signature, self.device)
        model = batch[0].model_on(inputs)
        weights = self.generator.edge_weights(self.generator.causal_part(latent), model.edges)
        model.weigh(weights)
        log_probabilities = torch.cat([example.log_probabilities for example in batch])
        kl = functional.kl_div(
            model(inputs.fields["x"]), log_probabilities, log_target=True, reduction="batchmean"
        )
        owner = inputs.fields["batch"][model.edges[0]]
        sums = weights.new_zeros(len(batch)).index_add(0, owner, weights)
        size = (sums / torch.bincount(owner, minlength=len(batch))).mean()
        drawn = torch.randperm(len(batch), generator=self.draw)[: self.loss.flow_graphs]
        flows = [self.flow(batch[i]) for i in drawn.tolist()]
        return elbo, kl, size, torch.stack(flows).mean()

    def flow(self, example: Example) -> Tensor:
        """The information flow on one graph, from samples of the prior."""
        alphas, betas = self.loss.alphas, self.loss.betas
        n, causal = len(example.graph.owner), self.network.causal
        alpha = self._normal(alphas, 1, n, causal).expand(alphas, betas, n, causal)
        beta = self._normal(alphas, betas, n, self.network.latent - causal)
        latent = torch.cat([alpha, beta], dim=-1).flatten(0, 1)
        parts = torch.split(latent, max(1, self.loss.batch_nodes // n))
        models = {
            count: example.model_on(Inputs.copies(example.data, self.device, count))
            for count in {len(part) for part in parts}
        }
        # checkpointing recomputes every part for its gradient: memory stays small, and that is
        # faster than a single pass over everything
        probabilities = [
            checkpoint(self._generated, example, models[len(part)], part, use_reentrant=False)
            for part in parts
        ]
        return information_flow(torch.cat(probabilities).view(alphas, betas, -1))

    def _generated(self, example: Example, model: PlainModel, latent: Tensor) -> Tensor:
        """Probabilities of a graph whose edges are generated from latent vectors (R, n, latent)."""
        ends = example.data.edge_index.to(self.device)
        weights = self.generator.edge_weights(latent, ends[:, ends[0] != ends[1]])
        model.weigh(weights.flatten())
        probabilities: Tensor = model(model.inputs.fields["x"]).exp()
        return probabilities

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.draw).to(self.device)


def check_graph_classes(task: ModelTask) -> None:
    """Raise unless a task is graph classification."""
    if task.mode == "regression" or task.task_level != "graph":
        raise ValueError(
            "OrphicX explains classes of graphs: mode must not be 'regression' and task_level must "
            f"be 'graph' (got {task.mode!r} and {task.task_level!r})"
        )
