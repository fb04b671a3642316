"""Training the generator of OrphicX: settings, losses on batches of graphs, early stopping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data

from gstarx._internal.progress import tqdm
from gstarx.explainers.edge_masks import (
    Inputs,
    PlainModel,
    check_features,
    check_reduce,
)
from gstarx.gnn import ModelTask, Signature, check_data, model_device, require_classes
from gstarx_bench.explainers.orphicx_network import (
    Generator,
    GeneratorGraphs,
    elbo_loss,
    information_flow,
)


@dataclass(frozen=True)
class OrphicXSettings:
    """Settings of ``OrphicX``, which describes them."""

    epochs: int = 300
    lr: float = 0.01
    batch_size: int = 128
    latent: int = 16
    causal: int = 8
    alphas: int = 25
    betas: int = 100
    flow_graphs: int = 1
    coef_elbo: float = 0.01
    coef_kl: float = 0.01
    coef_flow: float = 1.0
    coef_size: float = 0.0
    patience: int = 100
    colors: int = 100
    hidden_channels: int = 32
    decoder_channels: int = 16
    batch_nodes: int = 2_000
    reduce: str = "max"
    max_graphs: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name.startswith("coef_") and not value >= 0:
                raise ValueError(f"{name} must be at least 0 (got {value!r})")
            if isinstance(value, int) and value < 1:
                raise ValueError(f"{name} must be at least 1 (got {value!r})")
        if not self.lr > 0:
            raise ValueError(f"lr must be positive (got {self.lr!r})")
        if self.causal >= self.latent:
            raise ValueError(
                f"causal must be below latent, which is {self.latent} (got {self.causal})"
            )
        check_reduce(self.reduce)

    def generator(self, features: int) -> Generator:
        """A new generator for graphs with ``features`` features."""
        return Generator(
            features + self.colors,
            hidden_channels=self.hidden_channels,
            latent=self.latent,
            causal=self.causal,
            decoder_channels=self.decoder_channels,
        )


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
        self, settings: OrphicXSettings, training: Sequence[Example], held: Sequence[Example]
    ) -> None:
        self.settings = settings
        self.training = training
        self.held = held
        self.device = training[0].graph.features.device
        width = training[0].graph.features.shape[1] - settings.colors
        self.generator = settings.generator(width).to(self.device)
        self.optimizer = torch.optim.Adam(self.generator.parameters(), lr=settings.lr)
        self.best = self.generator
        self.draw = torch.Generator().manual_seed(torch.initial_seed() % 2**63)

    def epochs(self, *, progress: bool) -> Iterator[OrphicXEpoch]:
        """Train until patience runs out or all epochs are done."""
        lowest, waited = float("inf"), 0
        with tqdm(total=self.settings.epochs, desc="OrphicX", disable=not progress) as bar:
            for _ in range(self.settings.epochs):
                epoch = self._epoch()
                yield epoch
                bar.update()
                bar.set_postfix(loss=epoch.validation_loss, flow=epoch.flow)
                waited += 1
                if epoch.validation_loss < lowest:
                    lowest, waited = epoch.validation_loss, 0
                    self.best = deepcopy(self.generator)
                if waited >= self.settings.patience:
                    return

    def _epoch(self) -> OrphicXEpoch:
        order = torch.randperm(len(self.training), generator=self.draw).tolist()
        rows = []
        for begin in range(0, len(order), self.settings.batch_size):
            batch = [self.training[i] for i in order[begin : begin + self.settings.batch_size]]
            terms = self.terms(batch)
            self.optimizer.zero_grad()
            self.loss(terms).backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(self.generator.parameters(), 1.0)
            self.optimizer.step()
            rows.append(torch.stack([self.loss(terms), *terms]).detach())
        loss, elbo, kl, size, flow = torch.stack(rows).mean(dim=0).tolist()
        held = loss if not self.held else self._validate()
        return OrphicXEpoch(loss, elbo, kl, size, flow, held)

    def _validate(self) -> float:
        """The loss on the validation graphs, always with the same random numbers."""
        with torch.no_grad(), self._fixed_draws():
            losses = []
            for begin in range(0, len(self.held), self.settings.batch_size):
                batch = self.held[begin : begin + self.settings.batch_size]
                losses.append(float(self.loss(self.terms(batch))))
        return sum(losses) / len(losses)

    @contextmanager
    def _fixed_draws(self) -> Iterator[None]:
        going, self.draw = self.draw, torch.Generator().manual_seed(0)
        try:
            yield
        finally:
            self.draw = going

    def loss(self, terms: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
        """What is minimized, from the evidence bound, divergence, size and information flow."""
        elbo, kl, size, flow = terms
        settings = self.settings
        return (
            settings.coef_elbo * elbo
            + settings.coef_kl * kl
            + settings.coef_size * size
            - settings.coef_flow * flow
        )

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
        drawn = torch.randperm(len(batch), generator=self.draw)[: self.settings.flow_graphs]
        flows = [self.flow(batch[i]) for i in drawn.tolist()]
        return elbo, kl, size, torch.stack(flows).mean()

    def flow(self, example: Example) -> Tensor:
        """The information flow on one graph, from samples of the prior."""
        alphas, betas = self.settings.alphas, self.settings.betas
        n, causal = len(example.graph.owner), self.settings.causal
        alpha = self._normal(alphas, 1, n, causal).expand(alphas, betas, n, causal)
        beta = self._normal(alphas, betas, n, self.settings.latent - causal)
        latent = torch.cat([alpha, beta], dim=-1).flatten(0, 1)
        parts = torch.split(latent, max(1, self.settings.batch_nodes // n))
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
