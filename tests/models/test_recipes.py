"""The published settings, as they were published."""

from __future__ import annotations

import pytest

from gstarx.models.weights import ARCHITECTURES
from gstarx_bench.models import TrainingSettings, recipe
from gstarx_bench.models.recipes import GENERAL, RECIPES

#: Learning rate, weight decay, batch size, epochs, patience.
PUBLISHED = {
    ("mutag", "gcn"): (0.005, 0, 32, 1000, 100),
    ("mutag", "gin"): (0.005, 0, 64, 800, 100),
    ("bbbp", "gcn"): (0.005, 0, 64, 800, 200),
    ("bace", "gcn"): (0.01, 0, 64, 400, None),
    ("graph_sst2", "gcn"): (0.001, 0, 128, 50, None),
    ("graph_sst2", "gat"): (0.001, 0, 256, 50, 10),
    ("twitter", "gcn"): (0.001, 5e-4, 128, 50, None),
    ("ba_2motifs", "gcn"): (0.005, 0, 32, 800, 200),
    ("ba_shapes", "gcn"): (0.005, 5e-4, 1, 800, None),
}
#: Width, readout, adjacency normalized, embeddings normalized.
GCNS = {
    "mutag": (128, "mean", True, False),
    "bbbp": (128, "max", True, False),
    "bace": (128, "max", True, False),
    "graph_sst2": (128, "max", True, False),
    "twitter": (128, "max", True, False),
    "ba_2motifs": (20, "mean", False, False),
    "ba_shapes": (20, None, False, True),
}


def test_published_settings() -> None:
    for (dataset, network), published in PUBLISHED.items():
        s = recipe(dataset, network).settings
        found = (s.learning_rate, s.weight_decay, s.batch_size, s.epochs, s.patience)
        assert found == published, dataset
        assert s.clip == 2.0


def test_published_gcns() -> None:
    names = ("hidden_channels", "readout", "normalize", "normalize_embeddings")
    for dataset, published in GCNS.items():
        options = recipe(dataset, "gcn").options
        found = ARCHITECTURES["gcn"](in_channels=7, out_channels=2, **options).config
        assert tuple(found[name] for name in names) == published, dataset
        assert found["num_layers"] == 3


def test_published_gin_and_gat() -> None:
    gin = ARCHITECTURES["gin"](in_channels=7, out_channels=2, **recipe("mutag", "gin").options)
    assert (gin.config["hidden_channels"], gin.readout) == (128, "max")
    gat = ARCHITECTURES["gat"](in_channels=7, out_channels=2, **recipe("graph_sst2", "gat").options)
    assert (gat.config["hidden_channels"], gat.config["heads"], gat.readout) == (10, 10, "max")


def test_every_recipe_can_be_built() -> None:
    assert set(RECIPES) >= {"sst2", "tweets", "motifs", "nitro"}
    for networks in RECIPES.values():
        assert "gcn" in networks
        for network, found in networks.items():
            ARCHITECTURES[network](in_channels=3, out_channels=2, **found.options)


def test_changes_are_of_a_copy() -> None:
    assert recipe("mutag", "gcn", epochs=3, patience=None).settings == TrainingSettings(
        learning_rate=0.005, batch_size=32, epochs=3, patience=None
    )
    assert recipe("mutag", "gcn").settings.epochs == 1000
    with pytest.raises(TypeError, match="epoch"):
        recipe("mutag", "gcn", epoch=3)


def test_other_graphs_and_networks_get_the_general_recipe() -> None:
    assert set(GENERAL) == set(ARCHITECTURES)
    for name, network in ARCHITECTURES.items():
        assert recipe("qm9", name) == GENERAL[name]
        assert network(in_channels=3, out_channels=2, **GENERAL[name].options).readout == "max"
    assert recipe("mutag", "gat", epochs=5).settings.epochs == 5
    with pytest.raises(ValueError, match=r"network must be one of 'gcn', .* \(got 'rnn'\)"):
        recipe("mutag", "rnn")


def test_bad_settings() -> None:
    for changes, message in (
        ({"epochs": 0}, r"epochs must be at least 1 \(got 0\)"),
        ({"batch_size": 0}, r"batch_size must be at least 1 \(got 0\)"),
        ({"patience": 0}, r"patience must be at least 1 \(got 0\)"),
        ({"learning_rate": 0.0}, r"learning_rate must be above 0 \(got 0.0\)"),
        ({"learning_rate": float("nan")}, r"learning_rate must be above 0 \(got nan\)"),
        ({"clip": 0.0}, r"clip must be above 0 \(got 0.0\)"),
        ({"weight_decay": -1.0}, r"weight_decay must be at least 0 \(got -1.0\)"),
    ):
        with pytest.raises(ValueError, match=message):
            TrainingSettings(**changes)
