"""GStarX itself: which nodes mattered, as a PyG explainer and as plain functions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explanation

from gstarx.explainers.base import NodeExplainer, NodeResult
from gstarx.explainers.explanation import NodeExplanation
from gstarx.explainers.model_task import ModelTask, Seed, target_of
from gstarx.explainers.settings import ValueSettings
from gstarx.gnn.game import GNNGame
from gstarx.gnn.model_state import restored
from gstarx.gnn.players import check_data
from gstarx.values.subgraph_sampling import SubgraphPlan

_OWN_OPTIONS = frozenset({"seed", "progress", "edge_mask"})
_VALUE_OPTIONS = frozenset(field.name for field in fields(ValueSettings))
_GAME_OPTIONS = frozenset(inspect.signature(GNNGame).parameters) - {"model", "data", "lazy"}


class GStarX(NodeExplainer):
    """The paper's explainer (Algorithm 1), inside ``torch_geometric.explain.Explainer``.

    Scores every node by its share of the model's prediction under the Hamiache-Navarro value (or
    the Myerson, Shapley or Banzhaf value) of the game that the model plays on the graph. Exact
    wherever the coalitions that the value needs fit the budget, with standard errors elsewhere.

    Parameters
    ----------
    value, estimator, budget, max_sample_size, num_samples, sampling, inner, tau, superadditive,
    presence
        As in :class:`gstarx.explainers.ValueSettings`.
    payoff, baseline, removal, num_hops, batch_nodes, fallback, check
        As in :class:`gstarx.GNNGame`.
    seed
        The same seed gives the same numbers.
    progress
        Show a progress bar over coalitions.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.explain import Explainer
    >>> from gstarx.models import GCN
    >>> explainer = Explainer(
    ...     GCN(4, 8, 2),
    ...     algorithm=GStarX(),
    ...     explanation_type="model",
    ...     node_mask_type="object",
    ...     model_config={
    ...         "mode": "multiclass_classification",
    ...         "task_level": "graph",
    ...         "return_type": "raw",
    ...     },
    ... )
    >>> explanation = explainer(torch.ones(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> explanation.node_mask.shape, explanation.exact, explanation.evaluations
    (torch.Size([3, 1]), True, 6)

    Notes
    -----
    PyG's ``Explainer`` sets the model to evaluation mode itself and gives it back only when nothing
    was raised; :func:`gstarx.explain` restores it whatever happens, Ctrl-C included.
    """

    def __init__(
        self,
        *,
        value: str = "hn",
        estimator: str = "auto",
        budget: int = 20_000,
        max_sample_size: int = 10,
        num_samples: int | None = None,
        sampling: str = "random",
        inner: str = "exact",
        tau: float = 0.01,
        superadditive: bool = False,
        presence: float = 0.5,
        payoff: Any = "auto",
        baseline: Any = None,
        removal: Any = "remove",
        num_hops: int | None = None,
        batch_nodes: int | None = None,
        fallback: float | None = None,
        check: bool = True,
        seed: int | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__()
        self.settings = ValueSettings(
            value=value,
            estimator=estimator,
            budget=budget,
            max_sample_size=max_sample_size,
            num_samples=num_samples,
            sampling=sampling,
            inner=inner,
            tau=tau,
            superadditive=superadditive,
            presence=presence,
        )
        self.game_options = {
            "payoff": payoff,
            "baseline": baseline,
            "removal": removal,
            "num_hops": num_hops,
            "batch_nodes": batch_nodes,
            "fallback": fallback,
            "check": check,
        }
        self.seed = seed
        self.progress = progress

    @classmethod
    def as_published(
        cls, *, baseline: Any = None, seed: int | None = None, **options: Any
    ) -> GStarX:
        """The configuration of the paper's experiments.

        Random subsets of ten nodes, as many as there are nodes and until all are covered, each
        solved by the truncated iteration with ``tau = 0.01``; normalized probability, nodes
        removed. ``baseline`` has to be given: the published code takes the mean probability over
        the test split, see :func:`gstarx.expected_output`.
        """
        if baseline is None:
            raise ValueError(
                "the published configuration needs a baseline, the mean probability of every "
                "class: baseline=expected_output(model, graphs) (got None)"
            )
        published = {
            "value": "hn",
            "estimator": "subgraphs",
            "inner": "iterated",
            "tau": 0.01,
            "max_sample_size": 10,
            "sampling": "random",
            "payoff": "norm_prob",
            "removal": "remove",
        }
        return cls(**{**published, **options}, baseline=baseline, seed=seed)

    def forward(
        self,
        model: torch.nn.Module,
        x: Tensor | dict[str, Tensor],
        edge_index: Tensor | dict[tuple[str, str, str], Tensor],
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """Explain one output of the model; called by PyG's ``Explainer``."""
        if not isinstance(x, Tensor) or not isinstance(edge_index, Tensor):
            raise ValueError("GStarX takes homogeneous graphs: x and edge_index must be tensors")
        config = self.model_config
        level = config.task_level.value
        data = check_data(Data(x=x, edge_index=edge_index, **kwargs))
        if kwargs.get("edge_label_index") is None and level == "edge":
            raise ValueError("task_level='edge' needs edge_label_index=...")
        game = GNNGame(
            model,
            data,
            target=target_of(target, index, config),
            mode=config.mode.value,
            task_level=level,
            return_type=config.return_type.value,
            index=index,
            keywords=[name for name, given in kwargs.items() if given is not None],
            lazy=True,
            **self.game_options,
        )
        explanation = _explained(game, self.settings, self.seed, self.progress)
        if self.explainer_config.edge_mask_type is not None:
            explanation.edge_mask = edge_scores(explanation.node_mask, edge_index)
        return explanation

    def _explain(
        self, model: Any, data: Data, seed: Seed, target: int | None, task: ModelTask
    ) -> NodeResult:
        with restored(model):
            game = task.game(model, data, target, **self.game_options)
            found = _explained(game, self.settings, seed, self.progress)
        errors = found.node_std_error[:, 0].double().numpy()
        return NodeResult(
            found.node_mask[:, 0].double().numpy(),
            target=game.payoff.columns[0],
            evaluations=game.evaluations,
            details={
                "node_std_error": errors,
                "exact": found.exact,
                "estimator": found.estimator,
            },
        )


def explain(model: Any, data: Data, **options: Any) -> Explanation:
    """Explain one prediction: which nodes of this graph made the model decide.

    Parameters
    ----------
    model
        Any PyG model or callable; left exactly as it was found.
    data
        One graph.
    **options
        Those of :class:`GStarX` and :class:`gstarx.GNNGame`: ``target``, ``mode``, ``task_level``,
        ``return_type``, ``index``, ``payoff``, ``baseline``, ``removal``, ``value``, ``estimator``,
        ``budget``, ``seed``, ``progress``, ``edge_mask`` (also score edges) ...

    Returns
    -------
    Explanation
        A PyG explanation with ``node_mask`` [N, 1] (a column per target for several), the standard
        errors ``node_std_error``, ``worth`` of the whole graph (what Shapley scores sum to),
        ``component_worth`` (what HN and Myerson scores sum to), ``exact``, ``evaluations``,
        ``estimator``, ``baseline`` and its source, and ``check``: what the self-check compared.

    Examples
    --------
    >>> import torch
    >>> from gstarx.models import GCN
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> explain(GCN(3, 8, 2), data).node_mask.shape
    torch.Size([3, 1])
    """
    asked = Options.of(options)
    with restored(model):
        return asked.explanation(data, GNNGame(model, data, lazy=True, **asked.game))


def edge_scores(node_mask: Tensor, edge_index: Tensor) -> Tensor:
    """A score per edge, the mean of its two ends', so that edge-based tools can draw it.

    With several targets, a column for each of them.
    """
    scores = node_mask[:, 0] if node_mask.shape[1] == 1 else node_mask
    ends = edge_index.to(scores.device)
    return (scores[ends[0]] + scores[ends[1]]) / 2


@dataclass(frozen=True)
class Options:
    """The options of :func:`explain` by whom they are for."""

    settings: ValueSettings
    game: dict[str, Any]
    seed: Any = None
    progress: bool = False
    edge_mask: bool = False

    @classmethod
    def of(cls, options: dict[str, Any]) -> Options:
        """Options from keyword arguments, or an error that lists them."""
        own = {key: options[key] for key in _OWN_OPTIONS & options.keys()}
        value = {key: options[key] for key in _VALUE_OPTIONS & options.keys()}
        game = {key: options[key] for key in _GAME_OPTIONS & options.keys()}
        for name in options.keys() - own.keys() - value.keys() - game.keys():
            valid = sorted(_OWN_OPTIONS | _VALUE_OPTIONS | _GAME_OPTIONS)
            raise TypeError(f"there is no option {name!r}; valid are {', '.join(valid)}")
        return cls(ValueSettings(**value), game, **own)

    def explanation(
        self, data: Data, game: GNNGame, plan: SubgraphPlan | None = None
    ) -> Explanation:
        """The scores of a game with the fields of its graph."""
        found = _explained(game, self.settings, self.seed, self.progress, plan)
        # an edge mask of the data, as PyG's datasets with a ground truth have, is not a finding
        known = {*found.keys(), "edge_mask"}
        for key, field in data:
            if key not in known:
                found[key] = field
        if self.edge_mask:
            found.edge_mask = edge_scores(found.node_mask, data.edge_index)
        return found


def _explained(
    game: GNNGame,
    settings: ValueSettings,
    seed: Any,
    progress: bool,
    plan: SubgraphPlan | None = None,
) -> Explanation:
    """Scores of the players as a PyG explanation over all nodes of the graph."""
    with game.progress(progress):
        try:
            found, estimator = settings.allocate(game, game.graph, seed=seed, plan=plan)
        except Exception as error:
            if not game.settled and getattr(error, "__notes__", None):
                # it was the question, or the whole graph, and not the coalitions asked for
                error.__notes__.pop()
            raise
        everybody = np.ones((1, game.n), dtype=np.bool_)
        worths = game(np.concatenate([everybody, game.graph.component_coalitions]))
    scores = np.zeros((game.num_nodes, *found.values.shape[1:]))
    errors = np.zeros_like(scores)
    scores[game.nodes] = found.values
    errors[game.nodes] = found.std_error
    shape = (game.num_nodes, -1)
    # at least single precision, and that of the model where it has more
    dtype = torch.promote_types(game.prediction.dtype, torch.float32)
    return NodeExplanation(
        node_mask=torch.from_numpy(scores).to(dtype).reshape(shape),
        node_std_error=torch.from_numpy(errors).to(dtype).reshape(shape),
        worth=torch.from_numpy(np.atleast_1d(worths[0])),
        component_worth=torch.from_numpy(np.atleast_1d(worths[1:].sum(axis=0))),
        nodes=torch.from_numpy(game.nodes),
        prediction=game.prediction.clone(),
        explained=list(game.payoff.columns),
        payoff=game.payoff.name,
        baseline=list(game.payoff.baseline),
        baseline_source=game.payoff.baseline_source,
        value=settings.value,
        estimator=estimator,
        exact=found.exact,
        converged=found.converged,
        residual=found.residual,
        evaluations=game.evaluations,
        batch_nodes=game.batch_nodes,
        check=game.check.as_dict(),
    )
