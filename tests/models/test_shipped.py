"""The networks that ship: small, what they say they are, and as good as they say."""

from __future__ import annotations

import math
from importlib.resources import files

import pytest

from gstarx import datasets
from gstarx.models import digest, pretrained, pretrained_names
from gstarx_bench.models import accuracy

SHIPPED = ("motifs", "nitro")


@pytest.mark.parametrize("name", SHIPPED)
def test_they_do_what_their_facts_say(name: str) -> None:
    model, facts = pretrained(name)
    dataset = datasets.load(name)
    assert not model.training
    assert facts.dataset == name
    assert facts.dataset_digest == dataset.digest
    assert facts.digest == digest(model)
    for split in ("train", "val", "test"):
        found = accuracy(model, dataset.split(split))
        assert math.isclose(found, facts.accuracy[split], abs_tol=1e-6)
    assert facts.accuracy["test"] >= 0.98


def test_together_they_are_small() -> None:
    place = files("gstarx.models") / "trained"
    sizes = {
        entry.name: len(entry.read_bytes())
        for entry in place.iterdir()
        if entry.name.startswith(SHIPPED)
    }
    assert len(sizes) == 4
    assert sum(sizes.values()) < 200_000


def test_a_dataset_stands_for_its_gcn_and_others_are_refused() -> None:
    assert pretrained("nitro")[1].digest == pretrained("nitro-gcn")[1].digest
    assert set(pretrained_names()) >= {"motifs-gcn", "nitro-gcn"}
    with pytest.raises(
        ValueError, match=r"no network 'mutag'.* Valid are motifs-gcn, nitro-gcn, s"
    ):
        pretrained("mutag")
