"""How hypothesis draws, and how interrupts come in, for every test."""

import signal

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
