"""Garbage collection while a decision is computed: it allocates much, and almost nothing of it is cyclic."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector, then restore its previous state; also a decorator."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
