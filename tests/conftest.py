"""How hypothesis draws, for every test."""

from hypothesis import HealthCheck, settings

# No deadline: the first call of a compiled kernel is slow, and tests assert no times.
settings.register_profile(
    "everyday", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("soak", settings.get_profile("everyday"), max_examples=2_000)
settings.load_profile("everyday")
