"""The profiles of hypothesis: how many examples each law gets, and whether they are the same in every run.

The variable HYPOTHESIS_PROFILE selects one. `quick` is the default, for work on the code; `thorough` is for CI and
`make test-thorough`; `random` draws examples by a seed, for `make flaky`; `soak` runs for hours.
"""

import os
from typing import Final

from hypothesis import HealthCheck, settings

THOROUGH_EXAMPLE_COUNT: Final = 50
EXAMPLE_COUNT_BY_PROFILE: Final = {
    "quick": 15,
    "thorough": THOROUGH_EXAMPLE_COUNT,
    "random": THOROUGH_EXAMPLE_COUNT,
    "soak": 20_000,
}
RANDOM_PROFILES: Final = ("random", "soak")
"""The other profiles have the same examples in every run."""
PROFILE_VARIABLE: Final = "HYPOTHESIS_PROFILE"
DEFAULT_PROFILE: Final = "quick"


def load_selected_profile() -> None:
    """Register all profiles and load the one that the environment selects.

    Raises:
        hypothesis.errors.InvalidArgument: the environment selects an unknown profile.
    """
    for name, count in EXAMPLE_COUNT_BY_PROFILE.items():
        settings.register_profile(
            name,
            deadline=None,
            derandomize=name not in RANDOM_PROFILES,
            database=None,
            max_examples=count,
            suppress_health_check=(HealthCheck.too_slow,),  # the computer that runs the tests may be slow
        )
    settings.load_profile(os.environ.get(PROFILE_VARIABLE, DEFAULT_PROFILE))


def limit_examples(thorough_count: int) -> settings:
    """Return settings for an expensive law: *thorough_count* examples if thorough, in proportion in other profiles.

    Use it as a decorator of the law.
    """
    return settings(max_examples=max(1, thorough_count * settings().max_examples // THOROUGH_EXAMPLE_COUNT))
