"""A PyG explanation that knows which of its fields are the game's."""

from __future__ import annotations

from torch_geometric.explain import Explanation

#: Fields that are never one number per node or edge, however many there happen to be.
_OF_THE_GAME = frozenset({"worth", "component_worth", "explained", "baseline"})


class NodeExplanation(Explanation):  # type: ignore[misc]
    """A PyG explanation whose subgraphs keep what belongs to the whole game.

    PyG goes by sizes, and would take the two worths of two targets for those of two nodes.
    """

    def is_node_attr(self, key: str) -> bool:
        """Whether a field holds something for every node."""
        return not self._of_the_game(key) and super().is_node_attr(key)

    def is_edge_attr(self, key: str) -> bool:
        """Whether a field holds something for every edge."""
        return not self._of_the_game(key) and super().is_edge_attr(key)

    def _of_the_game(self, key: str) -> bool:
        return key in _OF_THE_GAME or (key == "prediction" and self[key].dim() == 1)
