"""The settings of a deployment in environment variables, as the functions have them."""

import os

from shared.settings import ChosenSettings


def read_environment_settings() -> ChosenSettings:
    """Return the settings in the environment variables; an empty variable counts as missing.

    Raises:
        ValueError: a variable has a value that is not allowed.
    """
    return ChosenSettings.from_environment({name: text for name, text in os.environ.items() if text})
