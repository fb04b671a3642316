"""GStarX, the paper's explainer, as a class."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from math import factorial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain.config import MaskType

from gstarx._internal.progress import check_progress
from gstarx.explainers.base import NodeExplainer, game_attribution, log
from gstarx.explainers.budget import Budgeted
from gstarx.explanation import Attribution
from gstarx.games import Worths, forget_coalitions
from gstarx.gnn import (
    ONLY_PLAYER,
    BaselineLike,
    GameOptions,
    GNNGame,
    ModelTask,
    Passes,
    PayoffLike,
    TaskLike,
    as_options,
    as_task,
    check_baseline,
    refuse_unknown,
    restored,
)
from gstarx.graphs import Coalitions, CommunicationGraph
from gstarx.players import Edges, Features, PlayersLike, as_players
from gstarx.registry import EXACT_BUDGET
from gstarx.values import (
    Allocation,
    Position,
    Seed,
    SubgraphPlan,
    Subgraphs,
    Value,
    ValueLike,
    as_value,
    node_shares,
    touched_nodes,
)

#: Edges whose links are listed even if the value ignores them.
_MOST_LINKED = 64
#: Boolean cells of coalitions of nodes that are evaluated in one call.
_CELLS = 1 << 24


class GStarX(NodeExplainer):
    """The paper's explainer (Algorithm 1), inside ``torch_geometric.explain.Explainer``.

    Scores every node by its share of the model's prediction under the Myerson value (or the
    Hamiache-Navarro, Shapley or Banzhaf value) of the game that the model plays on the graph. Exact
    if the coalitions that the value needs fit the budget, with standard errors otherwise.

    The defaults are what we recommend: of the values that respect the graph, the Myerson value with
    ``baseline="singletons"`` agrees best with known ground truth on most classifiers. Use
    ``value="shapley"`` for models that sum or count, ``value="banzhaf"`` for the highest fidelity,
    and :meth:`as_published` for the paper's experiments.

    Parameters
    ----------
    value, players, payoff, baseline, budget, game, passes, progress
        As for :func:`gstarx.explain`.
    task
        What models do, if :meth:`explain` is not told. Inside PyG's ``Explainer``, whose
        configuration says that, only the ``node_type`` of heterogeneous graphs counts.
    seed
        The same seed gives the same numbers.

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
    PyG's ``Explainer`` sets the model to evaluation mode and restores it only if nothing was
    raised; :func:`gstarx.explain` restores it whatever happens, including Ctrl-C.
    """

    heterogeneous = True

    @refuse_unknown
    def __init__(
        self,
        *,
        value: ValueLike = "myerson",
        players: PlayersLike = "nodes",
        task: TaskLike = None,
        payoff: PayoffLike = "auto",
        baseline: BaselineLike = None,
        budget: int | None = None,
        seed: int | None = None,
        game: GameOptions | None = None,
        passes: Passes | None = None,
        progress: bool | None = None,
    ) -> None:
        super().__init__()
        self.budgeted = Budgeted(as_value(value), budget)
        kind = as_players(players)
        if isinstance(self.value, Position):
            kind = _linking(kind)
        self.game_options: dict[str, Any] = {
            "players": kind,
            "payoff": payoff,
            "baseline": check_baseline(baseline),
            "game": as_options(game, GameOptions, "game"),
            "passes": as_options(passes, Passes, "passes"),
        }
        self.seed, self.task = seed, as_task(task)
        self.progress = check_progress(progress)

    @classmethod
    def as_published(
        cls,
        *,
        baseline: BaselineLike = None,
        value: Subgraphs = Subgraphs(),  # noqa: B008 (it is frozen)
        payoff: PayoffLike = "norm_prob",
        seed: int | None = None,
        game: GameOptions | None = None,
        passes: Passes | None = None,
        progress: bool | None = None,
    ) -> GStarX:
        """The configuration of the paper's experiments.

        Random subsets of ten nodes, as many as there are nodes and until all are covered, each
        solved by the truncated iteration with ``tau = 0.01``; normalized probability, nodes
        removed. ``baseline`` is required: the published code takes the mean probability over
        the test split, see :func:`gstarx.expected_output`.
        """
        if not isinstance(value, Subgraphs):
            raise TypeError(
                f"the published configuration takes value=Subgraphs(...) (got {value!r}): for "
                "another value, use GStarX(value=...)"
            )
        if baseline is None:
            raise ValueError(
                "the published configuration needs a baseline, the mean probability of every "
                "class: baseline=expected_output(model, graphs) (got None)"
            )
        return cls(
            value=value,
            payoff=payoff,
            baseline=baseline,
            seed=seed,
            game=game,
            passes=passes,
            progress=progress,
        )

    @property
    def value(self) -> Value:
        """The value that is computed."""
        return self.budgeted.value

    def supports(self) -> bool:
        """Whether PyG's settings are supported; logs the reason if not."""
        players, config = self.game_options["players"], self.explainer_config
        masks = config.node_mask_type, config.edge_mask_type
        if isinstance(players, Edges) and masks != (None, MaskType.object):
            log.error("players='edges' needs edge_mask_type='object' and node_mask_type=None")
            return False
        if isinstance(players, Features) and masks != (MaskType.common_attributes, None):
            log.error(
                "players='features' needs node_mask_type='common_attributes' and "
                "edge_mask_type=None"
            )
            return False
        if isinstance(players, Edges | Features):
            return True
        fitting = {
            (MaskType.common_attributes, None): "features",
            (None, MaskType.object): "edges",
        }
        if masks in fitting:
            log.error("for these masks, pass GStarX(players=%r)", fitting[masks])
            return False
        return super().supports()

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Scores of the players of the game that the model plays on the graph."""
        with restored(model):
            return self.attribute_game(self.game(model, data, task), seed)

    def game(self, model: Any, data: Data, task: ModelTask, **options: Any) -> GNNGame:
        """The game whose value is computed, with the baseline of this value if none was given."""
        chosen = {**self.game_options, **options}
        graph = self.value.follows_graph
        return GNNGame.for_value(model, data, task, graph=graph, **chosen)

    def attribute_game(
        self, game: GNNGame, seed: Seed, plan: SubgraphPlan | None = None
    ) -> Attribution:
        """Scores of the players of a game; a plan fixes which subgraphs to sample."""
        value, played = self.value, game
        singles: Any = None
        self._require_room(game)
        graph, together = self._communication(game)
        reported = np.concatenate([np.ones((1, game.n), dtype=np.bool_), together])
        with game.progress(self.progress):
            try:
                if isinstance(value, Position):
                    singles, played = _links_of(game)
                allocation, estimator = self.budgeted.allocate(
                    played, graph, seed=seed, plan=plan, reported=reported
                )
            except Exception as error:
                if not game.settled:  # the task or the full graph failed
                    forget_coalitions(error)
                raise
            details = self._node_details(game, allocation, singles)
            worths = value.played(game)(reported)
        game.warn_if_constant(value.share_of_constant(game.n))
        if game.payoff.baseline_source == ONLY_PLAYER:
            warnings.warn(
                "there is only one player, which is its own baseline, so its score is 0 whatever "
                "the model says: pass baseline='uniform' or a number",
                stacklevel=2,
            )
        columns = game.payoff.columns
        # a custom payoff may return several numbers, which become the targets
        games = len(game.payoff.baseline)
        # a list of one target is one target
        shape = (game.n,) if games == 1 else (game.n, games)
        return game_attribution(
            game,
            allocation.values.reshape(shape),
            std_errors=allocation.std_error.reshape(shape),
            target=list(columns if len(columns) == games else range(games)),
            exact=allocation.exact,
            estimator=estimator,
            details={
                "worth": torch.from_numpy(np.atleast_1d(worths[0])),
                "component_worth": torch.from_numpy(np.atleast_1d(worths[1:].sum(axis=0))),
                "payoff": game.payoff.name,
                "baseline": list(game.payoff.baseline),
                "baseline_source": game.payoff.baseline_source,
                "value": value.name,
                "two_sided": value.sides > 1,
                "converged": allocation.converged,
                "residual": allocation.residual,
                "batch_nodes": game.batch_nodes,
                "check": game.check.as_dict(),
                **details,
            },
        )

    def _require_room(self, game: GNNGame) -> None:
        """Raise before anything is listed of a node with more players than can be evaluated."""
        budget = self.budgeted.most
        if game.task_level == "node" and game.n > budget:
            raise ValueError(
                f"budget must be at least the number of players, {game.n:,}: every one of them has "
                f"to be seen (got {budget:,}). game=GameOptions(num_hops=1) leaves only those "
                "nearest to the node, and groups of nodes (players=...) are fewer players"
            )
        if game.task_level == "graph" and 2 * game.n > budget:
            game.settle()  # a model of nodes is refused before a larger budget is asked for

    def _communication(self, game: GNNGame) -> tuple[CommunicationGraph, Coalitions]:
        """Who communicates with whom, and the coalitions of everybody who does.

        The links between many edges are very many, and Shapley and Banzhaf values ignore them.
        """
        ignored = not (self.value.follows_graph or isinstance(self.value, Subgraphs))
        if ignored and game.players.kind == "edges" and game.n > _MOST_LINKED:
            unlinked = np.zeros((0, 2), dtype=np.int64)
            return CommunicationGraph(game.n, unlinked), np.ones((1, game.n), dtype=np.bool_)
        return game.graph, game.graph.component_coalitions

    def _node_details(self, game: GNNGame, allocation: Allocation, singles: Any) -> dict[str, Any]:
        """Scores of nodes where edges or groups are the players, as far as they are defined."""
        games = len(game.payoff.baseline)

        def as_tensor(scores: Any) -> Tensor:
            shape = (-1,) if games == 1 else (-1, games)
            return torch.from_numpy(np.ascontiguousarray(scores).reshape(shape))

        if singles is not None:
            assert game.players.edges is not None
            halves = node_shares(allocation.values, game.players.edges, len(singles))
            return {"node_scores": as_tensor(singles + halves.reshape(singles.shape))}
        exactly = allocation.exact and "exact" in self.value.estimators
        exactly &= self.value.estimator in ("auto", "exact")
        if game.players.kind != "groups" or not exactly:
            return {}
        limit = self.budgeted.most
        shared = _two_level_scores(game, self.value, limit)
        if shared is None:
            log.info("scores of nodes inside groups would take more than %d coalitions", limit)
            return {}
        return {"node_scores": as_tensor(shared[0]), "group_remainder": as_tensor(shared[1])}


def _linking(kind: Any) -> Edges:
    """Edges that bring the nodes they touch, as the position value has it."""
    if not isinstance(kind, Edges) or kind.directed:
        got = "directed edges" if isinstance(kind, Edges) else type(kind).__name__.lower()
        raise ValueError(
            f"value='position' is what undirected edges get: pass players='edges' (got {got})"
        )
    return replace(kind, touched=True)


def _links_of(game: GNNGame) -> tuple[Any, Any]:
    """Worths of single nodes (N, q), and the game of what links add to the nodes they touch.

    In the game of one node or pair, which is always there, no other node is worth anything alone.
    """
    if game.task_level != "graph":
        # the target alone is present, and that is the baseline
        return np.zeros((game.num_nodes, len(game.payoff.baseline))), game
    edges, nodes = game.players.edges, game.on_nodes()
    assert edges is not None
    singles = np.asarray(nodes(np.eye(nodes.n, dtype=np.bool_)))

    def beyond_alone(links: Any) -> Any:
        touched = touched_nodes(links, edges, nodes.n).astype(np.float64)
        return game(links) - touched @ singles

    return singles, beyond_alone


def _two_level_scores(
    game: GNNGame, value: Value, limit: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """What groups get, shared among their nodes (N, q), and what is left of it (P, q).

    ``None`` if that costs more.

    The nodes of group ``k`` share its score by the Shapley value of ``w(T)``, the score of the
    group when only its nodes ``T`` show. ``w`` of no nodes is not zero under values that look at
    the structure, where an emptied group still joins others: it is what is left. ``limit`` is the
    most coalitions of nodes to evaluate.
    """
    members = [
        np.flatnonzero(game.players.player_of == player) for player in range(len(game.players))
    ]
    if game.task_level != "graph" or _cost(game, value, members, limit) > limit:
        return None
    nodes_game = game.on_nodes()
    q = len(game.payoff.baseline)
    scores = np.zeros((nodes_game.n, q))
    remainder = np.zeros((len(members), q))
    for player, nodes in enumerate(members):
        restricted = _restricted(game, nodes_game, player, nodes)
        allocation = value.exact(restricted, game.graph, max_coalitions=EXACT_BUDGET)
        shown = allocation.values[player].reshape(1 << len(nodes), q)
        remainder[player] = shown[0]
        scores[nodes] = _shared(shown)
    return scores, remainder


def _cost(game: GNNGame, value: Value, members: list[NDArray[np.int64]], limit: int) -> float:
    """Coalitions of nodes that are evaluated at most."""
    if max(map(len, members)) > 30:
        return float("inf")
    if not value.follows_graph:
        with_player = [2.0 ** (len(members) - 1)] * len(members)
    elif game.graph.count_connected_coalitions(limit) > limit:
        return float("inf")
    else:
        with_player = game.graph.connected_coalitions().sum(axis=0).tolist()
    return value.sides * float(
        sum(2.0 ** len(n) * k for n, k in zip(members, with_player, strict=True))
    )


def _restricted(
    game: GNNGame, nodes_game: GNNGame, player: int, nodes: NDArray[np.int64]
) -> Callable[[Coalitions], Worths]:
    """The games in which only some nodes of a group show, for all sets of them, as columns."""
    owner = game.players.player_of
    subsets = (np.arange(1 << len(nodes))[:, None] >> np.arange(len(nodes)) & 1).astype(np.bool_)
    q = len(game.payoff.baseline)

    def worth(coalitions: Coalitions) -> Worths:
        without = np.asarray(game(coalitions)).reshape(len(coalitions), 1, q)
        worths = np.repeat(without, len(subsets), axis=1)
        inside = np.flatnonzero(coalitions[:, player])
        at_once = max(1, _CELLS // (len(subsets) * len(owner)))
        for first in range(0, len(inside), at_once):
            rows = inside[first : first + at_once]
            there = np.where(owner >= 0, coalitions[rows][:, owner], True)
            there = np.repeat(there[:, None], len(subsets), axis=1)
            there[:, :, nodes] = subsets
            # nobody is worth nothing, whoever is always there
            somebody = np.any(there & (owner >= 0), axis=2, keepdims=True)
            shown = np.asarray(nodes_game(there.reshape(-1, len(owner))))
            worths[rows] = shown.reshape(len(rows), len(subsets), q) * somebody
        return worths.reshape(len(coalitions), -1)

    return worth


def _shared(worths: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Shapley value (s, q) from the worths (2^s, q) of all subsets, by bitmask.

    That of nobody is not zero, and is not shared.
    """
    count = len(worths).bit_length() - 1
    masks = np.arange(len(worths))
    sizes = np.array([int(mask).bit_count() for mask in masks])
    weight = [factorial(k) * factorial(count - k - 1) / factorial(count) for k in range(count)]
    values = np.zeros((count, worths.shape[1]))
    for node in range(count):
        before = masks[masks >> node & 1 == 0]
        gained = worths[before | 1 << node] - worths[before]
        values[node] = np.array(weight)[sizes[before]] @ gained
    return values
