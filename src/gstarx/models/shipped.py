"""Networks that ship with the package, trained by its own command on data that anybody has."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from gstarx.models.network import Network
from gstarx.models.weights import ModelFacts, load_model

_PLACE = files("gstarx.models") / "trained"


def pretrained_names() -> tuple[str, ...]:
    """The networks that :func:`pretrained` knows, named by dataset and network.

    >>> "nitro-gcn" in pretrained_names()
    True
    """
    found = (place.name for place in _PLACE.iterdir()) if _PLACE.is_dir() else ()
    return tuple(sorted(name[:-12] for name in found if name.endswith(".safetensors")))


def shipped_path(name: str) -> Path:
    """The file of a network that ships, by its full name."""
    return Path(__file__).parent / "trained" / f"{name}.safetensors"


def pretrained(name: str) -> tuple[Network, ModelFacts]:
    """A network that ships with the package, in evaluation mode, and what is known of it.

    How it was trained, and how to train it again: ``python -m reproduction pretrain``.

    Parameters
    ----------
    name
        One of :func:`pretrained_names`; the name of a dataset alone stands for its GCN.

    Examples
    --------
    >>> model, facts = pretrained("nitro")
    >>> facts.dataset, facts.network
    ('nitro', 'gcn')
    """
    names = pretrained_names()
    full = f"{name}-gcn" if f"{name}-gcn" in names else name
    if full not in names:
        raise ValueError(f"name must be one of {', '.join(map(repr, names))} (got {name!r})")
    with as_file(_PLACE) as place:
        return load_model(place / f"{full}.safetensors")
