"""OrphicX: a generative model of edges whose causal part carries what the model looks at."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data
from tqdm import tqdm

from gstarx.coalitions.players import check_data
from gstarx.coalitions.signature import Signature, model_device
from gstarx.explainers.base import NodeExplainer, NodeResult
from gstarx.explainers.edge_masks import (
    Explained,
    Inputs,
    PlainModel,
    Seed,
    check_features,
    check_model_task,
    check_reduce,
    check_weighable,
    check_width,
    isolated,
    node_scores,
    seeded,
)
from gstarx.explainers.orphicx_network import (
    Generator,
    GeneratorGraphs,
    elbo_loss,
    information_flow,
)
from gstarx.explainers.tasks import ModelTask
from gstarx.explainers.trained_files import read_trained, write_trained

#: Of the training graphs, held out where no validation graphs are given.
_HELD_OUT = 0.2


@dataclass(frozen=True)
class OrphicXSettings:
    """Settings of :class:`OrphicX`, which describes them."""

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
    colours: int = 100
    hidden_channels: int = 32
    decoder_channels: int = 16
    batch_nodes: int = 2_000
    reduce: str = "max"

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
        """A new generator for graphs with so many features."""
        return Generator(
            features + self.colours,
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
        What is minimised.
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


class OrphicX(NodeExplainer):
    """OrphicX (Lin et al., 2022), as first published, on any model with layers of PyG.

    A variational auto-encoder of graphs gives every node a latent vector, of which a part is
    causal. It is trained once, by :meth:`fit`, so that information flows from the causal part to
    the model's prediction when messages are multiplied by the weights of the generated edges.
    The weight of an edge is what the decoder makes of the causal part alone, at the means of the
    encoder: explaining draws nothing. A node gets the highest weight of its edges.

    The defaults are those published for graph classification. The loss is the sum of

    - minus the information flow, from samples of the prior on graphs drawn from the batch;
    - the divergence of the prediction with the causal edges from that of the graph itself;
    - the negative evidence lower bound of the auto-encoder;
    - the mean weight of the edges,

    each times its weight. Gradients are clipped to norm 1. Messages along self-loops pass as they
    are. Layers that normalise by degree do so before edges are weighed.

    Parameters
    ----------
    epochs, lr, batch_size
        Of Adam, on graphs in random order.
    latent, causal
        Width of the latent vectors, and of their causal part.
    alphas, betas
        Samples of causal factors, and for each of them samples of the other factors.
    flow_graphs
        Graphs of a batch for which the information flow is estimated.
    coef_elbo, coef_kl, coef_flow, coef_size
        Weights of the terms.
    patience
        Epochs without a better validation loss after which training ends. The best epoch counts.
    colours
        Columns for the structural labels of nodes.
    hidden_channels, decoder_channels
        Widths of encoder and decoder.
    batch_nodes
        How many nodes go through the model at once, of the ``alphas * betas`` copies of a graph.
    reduce
        How a node's score comes from its edges: ``"max"``, ``"mean"`` or ``"sum"``.
    seed
        The seed inside PyG's ``Explainer``, without effect.
    """

    requires_training = True

    def __init__(
        self,
        *,
        epochs: int = 300,
        lr: float = 0.01,
        batch_size: int = 128,
        latent: int = 16,
        causal: int = 8,
        alphas: int = 25,
        betas: int = 100,
        flow_graphs: int = 1,
        coef_elbo: float = 0.01,
        coef_kl: float = 0.01,
        coef_flow: float = 1.0,
        coef_size: float = 0.0,
        patience: int = 100,
        colours: int = 100,
        hidden_channels: int = 32,
        decoder_channels: int = 16,
        batch_nodes: int = 2_000,
        reduce: str = "max",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.settings = OrphicXSettings(
            epochs=epochs,
            lr=lr,
            batch_size=batch_size,
            latent=latent,
            causal=causal,
            alphas=alphas,
            betas=betas,
            flow_graphs=flow_graphs,
            coef_elbo=coef_elbo,
            coef_kl=coef_kl,
            coef_flow=coef_flow,
            coef_size=coef_size,
            patience=patience,
            colours=colours,
            hidden_channels=hidden_channels,
            decoder_channels=decoder_channels,
            batch_nodes=batch_nodes,
            reduce=reduce,
        )
        self.seed = seed
        #: The trained generator, or ``None``.
        self.generator: Generator | None = None
        #: All epochs of the training.
        self.history: tuple[OrphicXEpoch, ...] = ()

    def fit(
        self,
        model: Any,
        graphs: Iterable[Data],
        *,
        validation: Iterable[Data] | None = None,
        seed: Seed = 0,
        progress: bool = False,
        **task: Any,
    ) -> Self:
        """Train on graphs and what the model says of them; earlier training is forgotten.

        Parameters
        ----------
        model
            The model; left exactly as it was.
        graphs
            The training graphs. Those without edges are passed over.
        validation
            Graphs that decide when to stop, and which epoch counts. By default a fifth of the
            training graphs, drawn at random; of fewer than five the training loss decides.
        seed
            The same seed gives the same weights.
        progress
            Show a bar.
        **task
            ``mode`` and ``return_type`` as in PyG.
        """
        asked = ModelTask.of(task)
        network = isolated(model)
        check_weighable(network, "OrphicX")
        with seeded(network, seed):
            training = _examples(network, graphs, asked, self.settings.colours)
            if not training:
                raise ValueError("OrphicX learns from edges: at least one graph must have some")
            if validation is None:
                order = torch.randperm(len(training)).tolist()
                split = int(_HELD_OUT * len(training))
                held = [training[i] for i in order[:split]]
                training = [training[i] for i in order[split:]]
            else:
                held = _examples(network, validation, asked, self.settings.colours)
            run = _Training(self.settings, training, held)
            self.history = tuple(run.epochs(progress=progress))
        self.generator = run.best.requires_grad_(False)
        return self

    def _explain(
        self, model: Any, data: Data, seed: Seed, target: int | None, task: ModelTask
    ) -> NodeResult:
        if self.generator is None:
            raise RuntimeError(
                "OrphicX has to be trained before it can explain: call fit(model, graphs), or "
                "OrphicX.load(path)"
            )
        _check_task(task)
        network = isolated(model)
        with seeded(network, seed):
            asked = Explained.of(network, data, target, task, method="OrphicX", kind="log_prob")
        settings, inputs, device = self.settings, asked.model.inputs, asked.x.device
        width = self.generator.first.in_features - settings.colours
        if asked.x.shape[1] != width:
            raise ValueError(
                f"OrphicX was trained on graphs with {width} features (got {asked.x.shape[1]})"
            )
        generator = self.generator.to(device)
        with torch.no_grad():
            mean, _ = generator.encode(GeneratorGraphs.of(data, settings.colours, device))
            logits = generator.edge_logits(generator.causal_part(mean), inputs.edges)
            # in double precision, because weights close to 1 would be tied otherwise
            weights = logits.double().sigmoid()
        scores, edge_mask = node_scores(weights, inputs, settings.reduce)
        return NodeResult(node_scores=scores, target=asked.column, details={"edge_mask": edge_mask})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Store the trained generator and all settings in one ``.safetensors`` file."""
        if self.generator is None:
            raise RuntimeError("OrphicX has to be trained before it can be saved")
        write_trained(path, "OrphicX", asdict(self.settings), self.generator.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The explainer that :meth:`save` has stored."""
        settings, tensors = read_trained(path, "OrphicX")
        try:
            explainer = cls(**settings)
            width = tensors["first.weight"].shape[1] - explainer.settings.colours
            generator = explainer.settings.generator(width)
            generator.load_state_dict(tensors)
        except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold a trained OrphicX: {error}") from error
        explainer.generator = generator.requires_grad_(False)
        return explainer


@dataclass(frozen=True)
class _Example:
    """A graph to train on, as the model and as the generator see it."""

    network: Any
    signature: Signature
    task: ModelTask
    data: Data
    graph: GeneratorGraphs
    log_probabilities: Tensor

    def model_on(self, inputs: Inputs) -> PlainModel:
        return PlainModel(self.network, self.signature, inputs, self.task, "log_prob")


def _examples(
    network: Any, graphs: Iterable[Data], task: ModelTask, colours: int
) -> list[_Example]:
    """Graphs with edges, and what the model says of each."""
    _check_task(task)
    found = []
    for graph in graphs:
        data = check_data(graph)
        check_model_task(task, data)
        device = model_device(network, check_features(data, "OrphicX").device)
        if not bool((data.edge_index[0] != data.edge_index[1]).any()):
            continue
        signature = Signature.of(network, data)
        if not signature.takes_batch:
            raise ValueError(
                "OrphicX puts many graphs through the model at once: the model must take batch"
            )
        model = PlainModel(network, signature, Inputs.copies(data, device), task, "log_prob")
        with torch.no_grad():
            said = model(model.inputs.fields["x"])
        check_width(model)
        seen = GeneratorGraphs.of(data, colours, device)
        found.append(_Example(network, signature, task, data, seen, said))
    return found


class _Training:
    """The state of a training: the generator, its optimiser, random numbers, the best so far."""

    def __init__(
        self, settings: OrphicXSettings, training: Sequence[_Example], held: Sequence[_Example]
    ) -> None:
        self.settings = settings
        self.training = training
        self.held = held
        self.device = training[0].graph.features.device
        width = training[0].graph.features.shape[1] - settings.colours
        self.generator = settings.generator(width).to(self.device)
        self.optimizer = torch.optim.Adam(self.generator.parameters(), lr=settings.lr)
        self.best = self.generator
        self.draw = torch.Generator().manual_seed(torch.initial_seed() % 2**63)

    def epochs(self, *, progress: bool) -> Iterator[OrphicXEpoch]:
        """Train until the validation loss has not been better for long, or the epochs are over."""
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
        """What is minimised, from the evidence bound, divergence, size and information flow."""
        elbo, kl, size, flow = terms
        chosen = self.settings
        return (
            chosen.coef_elbo * elbo
            + chosen.coef_kl * kl
            + chosen.coef_size * size
            - chosen.coef_flow * flow
        )

    def terms(self, batch: Sequence[_Example]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The terms of the loss on a batch of graphs."""
        graphs = GeneratorGraphs.union([example.graph for example in batch])
        mean, log_std = self.generator.encode(graphs)
        latent = mean + log_std.exp() * self._normal(*mean.shape)
        elbo = elbo_loss(self.generator, graphs, latent, mean, log_std)
        inputs = Inputs.union([example.data for example in batch], batch[0].signature, self.device)
        model = batch[0].model_on(inputs)
        weights = self.generator.edge_weights(self.generator.causal_part(latent), model.edges)
        model.weigh(weights)
        said = torch.cat([example.log_probabilities for example in batch])
        kl = functional.kl_div(
            model(inputs.fields["x"]), said, log_target=True, reduction="batchmean"
        )
        owner = inputs.fields["batch"][model.edges[0]]
        sums = weights.new_zeros(len(batch)).index_add(0, owner, weights)
        size = (sums / torch.bincount(owner, minlength=len(batch))).mean()
        chosen = torch.randperm(len(batch), generator=self.draw)[: self.settings.flow_graphs]
        flows = [self.flow(batch[place]) for place in chosen.tolist()]
        return elbo, kl, size, torch.stack(flows).mean()

    def flow(self, example: _Example) -> Tensor:
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
        # a second pass for the gradient of every part: what a part leaves in memory stays small,
        # and small is faster than a single pass over all
        found = [
            checkpoint(self._generated, example, models[len(part)], part, use_reentrant=False)
            for part in parts
        ]
        return information_flow(torch.cat(found).view(alphas, betas, -1))

    def _generated(self, example: _Example, model: PlainModel, latent: Tensor) -> Tensor:
        """Probabilities of a graph whose edges are generated from latent vectors (R, n, latent)."""
        ends = example.data.edge_index.to(self.device)
        weights = self.generator.edge_weights(latent, ends[:, ends[0] != ends[1]])
        model.weigh(weights.flatten())
        probabilities: Tensor = model(model.inputs.fields["x"]).exp()
        return probabilities

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.draw).to(self.device)


def _check_task(task: ModelTask) -> None:
    if task.mode == "regression" or task.task_level != "graph":
        raise ValueError(
            "OrphicX explains classes of graphs: mode must not be 'regression' and task_level must "
            f"be 'graph' (got {task.mode!r} and {task.task_level!r})"
        )
