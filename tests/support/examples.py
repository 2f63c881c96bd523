"""The Hypothesis profile of every test that draws examples."""

from hypothesis import HealthCheck, settings

# No deadline: the time of an example depends on how busy the machine is. And the examples come from the seed that
# `make` gives, in CI as well: Hypothesis's own profile for CI draws from the name of the test and ignores the seed.
settings.register_profile("calm", deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")
