"""Long reckoning without the cycle collector: it would walk over all pods of the cluster, time and again, for nothing.

Nothing that a solver makes and drops refers to itself, so counting references frees it all.
"""

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def undisturbed(work: Callable[P, T]) -> Callable[P, T]:
    """Keep the collector off while *work* is done; afterwards it is as it was."""

    @wraps(work)
    def quietly(*args: P.args, **kwargs: P.kwargs) -> T:
        if not gc.isenabled():
            return work(*args, **kwargs)
        gc.disable()
        try:
            return work(*args, **kwargs)
        finally:
            gc.enable()

    return quietly
