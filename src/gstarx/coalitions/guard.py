"""Leaving a model exactly as it was found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gstarx.coalitions.signature import Model, model_device


@contextmanager
def untouched(model: Model) -> Iterator[None]:
    """Evaluation mode without gradients inside; modes and random state as before afterwards.

    Every submodule gets its own mode back, so that a model with some frozen layers keeps them.
    """
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    modes = [module.training for module in modules]
    device = model_device(model, torch.device("cpu"))
    elsewhere = None if device.type == "cpu" else torch.get_device_module(device)
    states = torch.get_rng_state(), elsewhere and elsewhere.get_rng_state(device)
    try:
        for module in modules:
            # not .eval(), which a model may override, and which would run once per level
            module.training = False
        with torch.inference_mode():
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
        torch.set_rng_state(states[0])
        if elsewhere is not None:
            elsewhere.set_rng_state(states[1], device)
