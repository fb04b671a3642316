"""How hypothesis draws, and how interrupts and warnings come in, for every test."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # started in the background, where shells turn interrupts off for us and all whom we start
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first call of a compiled kernel is slow, and tests assert no times.
settings.register_profile(
    "everyday", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("soak", settings.get_profile("everyday"), max_examples=2_000)
settings.load_profile("everyday")

#: Samplers themselves are tested with every warning an error.
_SAMPLERS = Path(__file__).parent / "values"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Elsewhere networks without training are explained from few evaluations: noise is expected."""
    for item in items:
        if _SAMPLERS not in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning"), append=False
            )
