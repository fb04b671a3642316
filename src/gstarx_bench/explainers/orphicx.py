"""OrphicX: a generative model of edges whose causal factors determine the prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from gstarx.explainers.edge_masks import (
    Explained,
    check_reduce,
    check_weighable,
    isolated,
    node_scores,
    seeded,
)
from gstarx.explanation import Attribution
from gstarx.gnn import ModelTask, TaskLike
from gstarx.values import Seed
from gstarx_bench.explainers.orphicx_generator import (
    Generator,
    GeneratorGraphs,
    OrphicXEpoch,
    OrphicXLoss,
    OrphicXNetwork,
    OrphicXSchedule,
    Training,
    check_graph_classes,
    examples_of,
)
from gstarx_bench.explainers.trained_files import TrainedExplainer

#: The share of training graphs that is held out if no validation graphs are given.
_HELD_OUT = 0.2


class OrphicX(TrainedExplainer[Generator]):
    """OrphicX (Lin et al., 2022), as first published, for any model with PyG layers.

    A variational auto-encoder of graphs gives every node a latent vector, part of which is causal.
    It is trained once, by :meth:`fit`, so that information flows from the causal part to the
    model's prediction when messages are multiplied by the weights of the generated edges.
    The weight of an edge is decoded from the causal part alone, at the encoder's means: explaining
    is not random. A node gets the highest weight of its edges.

    The defaults are those published for graph classification. The loss is the sum of

    - minus the information flow, from samples of the prior on graphs drawn from the batch;
    - the divergence of the prediction with the causal edges from that of the graph itself;
    - the negative evidence lower bound of the auto-encoder;
    - the mean weight of the edges,

    each times its weight. Gradients are clipped to norm 1. Messages along self-loops are not
    changed. Layers that normalize by degree do so before edges are weighted.

    Parameters
    ----------
    network, loss, schedule
        The sizes of the generator, what it minimizes, and how it is trained.
    reduce
        How a node's score comes from its edges: ``"max"``, ``"mean"`` or ``"sum"``.
    seed
        The seed inside PyG's ``Explainer``, without effect.
    """

    def __init__(
        self,
        *,
        network: OrphicXNetwork = OrphicXNetwork(),  # noqa: B008
        loss: OrphicXLoss = OrphicXLoss(),  # noqa: B008
        schedule: OrphicXSchedule = OrphicXSchedule(),  # noqa: B008
        reduce: str = "max",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        check_reduce(reduce)
        self.network, self.loss, self.schedule = network, loss, schedule
        self.reduce, self.seed = reduce, seed
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
        task: TaskLike = None,
    ) -> Self:
        """Train on graphs and the model's predictions; earlier training is discarded.

        Parameters
        ----------
        model
            The model; left exactly as it was.
        graphs
            The training graphs. Those without edges are skipped.
        validation
            Graphs that decide when to stop, and which epoch is kept. By default a fifth of the
            training graphs, drawn at random; with fewer than five, the training loss decides.
        seed
            The same seed gives the same weights.
        progress
            Show a bar.
        task
            As for :meth:`explain`.
        """
        known = ModelTask.of(model, self._task(task))
        network, colors = isolated(model), self.network.colors
        check_weighable(network, "OrphicX")
        with seeded(network, seed):
            examples = examples_of(network, self._sampled(graphs), known, colors)
            if not examples:
                raise ValueError("OrphicX learns from edges: at least one graph must have some")
            if validation is None:
                order = torch.randperm(len(examples)).tolist()
                split = int(_HELD_OUT * len(examples))
                held = [examples[i] for i in order[:split]]
                examples = [examples[i] for i in order[split:]]
            else:
                held = examples_of(network, validation, known, colors)
            run = Training(self.network, self.loss, self.schedule, examples, held)
            self.history = tuple(run.epochs(progress=progress))
        self.trained = run.best.requires_grad_(False)
        return self

    def _sampled(self, graphs: Iterable[Data]) -> list[Data]:
        """The training graphs, or ``max_graphs`` of them at random."""
        listed, most = list(graphs), self.schedule.max_graphs
        if most is None or len(listed) <= most:
            return listed
        return [listed[i] for i in torch.randperm(len(listed))[:most].tolist()]

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Weights of edges from the trained generator."""
        trained = self._ready()
        check_graph_classes(task)
        network = isolated(model)
        with seeded(network, seed):
            explained = Explained.of(network, data, task, method="OrphicX", kind="log_prob")
        inputs, device, colors = explained.model.inputs, explained.x.device, self.network.colors
        width = trained.first.in_features - colors
        if explained.x.shape[1] != width:
            raise ValueError(
                f"OrphicX was trained on graphs with {width} features (got {explained.x.shape[1]})"
            )
        generator = trained.to(device)
        with torch.no_grad():
            mean, _ = generator.encode(GeneratorGraphs.of(data, colors, device))
            logits = generator.edge_logits(generator.causal_part(mean), inputs.edges)
            # in double precision, because weights close to 1 would be tied otherwise
            weights = logits.double().sigmoid()
        scores, edge_mask = node_scores(weights, inputs, self.reduce)
        return Attribution(scores=scores, target=explained.column, edge_mask=edge_mask)

    def _stored(self) -> dict[str, Any]:
        groups = (self.network, self.loss, self.schedule)
        return {"reduce": self.reduce} | {k: v for one in groups for k, v in asdict(one).items()}

    def _empty(self, tensors: Mapping[str, Tensor]) -> Generator:
        width = tensors["first.weight"].shape[1] - self.network.colors
        return self.network.generator(width).requires_grad_(False)
