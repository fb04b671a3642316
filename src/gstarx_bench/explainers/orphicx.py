"""OrphicX: a generative model of edges whose causal factors determine the prediction."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Self

import torch
from torch_geometric.data import Data

from gstarx._internal.arguments import taken_by
from gstarx.explainers.base import NodeExplainer
from gstarx.explainers.edge_masks import (
    Explained,
    check_weighable,
    isolated,
    node_scores,
    seeded,
)
from gstarx.explanation import Attribution
from gstarx.gnn import ModelTask
from gstarx.values import Seed
from gstarx_bench.explainers.orphicx_generator import (
    Generator,
    GeneratorGraphs,
    OrphicXEpoch,
    OrphicXSettings,
    Training,
    check_graph_classes,
    examples_of,
)
from gstarx_bench.explainers.trained_files import read_trained, write_trained

#: The share of training graphs that is held out if no validation graphs are given.
_HELD_OUT = 0.2


class OrphicX(NodeExplainer):
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
        Epochs without a better validation loss after which training ends. The best epoch is kept.
    colors
        Columns for the structural labels of nodes.
    hidden_channels, decoder_channels
        Widths of encoder and decoder.
    batch_nodes
        How many nodes go through the model at once, of the ``alphas * betas`` copies of a graph.
    reduce
        How a node's score comes from its edges: ``"max"``, ``"mean"`` or ``"sum"``.
    max_graphs
        Train on at most this many graphs, drawn at random; by default on all.
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
        colors: int = 100,
        hidden_channels: int = 32,
        decoder_channels: int = 16,
        batch_nodes: int = 2_000,
        reduce: str = "max",
        max_graphs: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.settings = OrphicXSettings(**taken_by(OrphicXSettings, locals()))
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
        mode: str = "multiclass_classification",
        task_level: str = "graph",
        return_type: str = "raw",
        keywords: Sequence[str] | None = None,
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
        mode, task_level, return_type, keywords
            As for :meth:`explain`.
        """
        task = ModelTask(mode, task_level, return_type, keywords=keywords)
        network = isolated(model)
        check_weighable(network, "OrphicX")
        with seeded(network, seed):
            training = examples_of(network, self._sampled(graphs), task, self.settings.colors)
            if not training:
                raise ValueError("OrphicX learns from edges: at least one graph must have some")
            if validation is None:
                order = torch.randperm(len(training)).tolist()
                split = int(_HELD_OUT * len(training))
                held = [training[i] for i in order[:split]]
                training = [training[i] for i in order[split:]]
            else:
                held = examples_of(network, validation, task, self.settings.colors)
            run = Training(self.settings, training, held)
            self.history = tuple(run.epochs(progress=progress))
        self.generator = run.best.requires_grad_(False)
        return self

    def _sampled(self, graphs: Iterable[Data]) -> list[Data]:
        """The training graphs, or ``max_graphs`` of them at random."""
        listed, most = list(graphs), self.settings.max_graphs
        if most is None or len(listed) <= most:
            return listed
        return [listed[i] for i in torch.randperm(len(listed))[:most].tolist()]

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Weights of edges from the trained generator."""
        if self.generator is None:
            raise RuntimeError(
                "OrphicX has to be trained before it can explain: call fit(model, graphs), or "
                "OrphicX.load(path)"
            )
        check_graph_classes(task)
        network = isolated(model)
        with seeded(network, seed):
            explained = Explained.of(network, data, task, method="OrphicX", kind="log_prob")
        settings, inputs, device = self.settings, explained.model.inputs, explained.x.device
        width = self.generator.first.in_features - settings.colors
        if explained.x.shape[1] != width:
            raise ValueError(
                f"OrphicX was trained on graphs with {width} features (got {explained.x.shape[1]})"
            )
        generator = self.generator.to(device)
        with torch.no_grad():
            mean, _ = generator.encode(GeneratorGraphs.of(data, settings.colors, device))
            logits = generator.edge_logits(generator.causal_part(mean), inputs.edges)
            # in double precision, because weights close to 1 would be tied otherwise
            weights = logits.double().sigmoid()
        scores, edge_mask = node_scores(weights, inputs, settings.reduce)
        return Attribution(scores=scores, target=explained.column, edge_mask=edge_mask)

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
            width = tensors["first.weight"].shape[1] - explainer.settings.colors
            generator = explainer.settings.generator(width)
            generator.load_state_dict(tensors)
        except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold a trained OrphicX: {error}") from error
        explainer.generator = generator.requires_grad_(False)
        return explainer
