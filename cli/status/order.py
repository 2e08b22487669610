"""The sort keys of the node table, and the keyboard keys that select them."""

from typing import Final

SORTS: Final = ("price", "cpu", "memory", "pods", "age", "name", "pool", "type", "state", "blocked")
SORT_BY_KEY: Final = dict(zip(("$", "c", "m", "p", "a", "n", "o", "t", "s", "b"), SORTS, strict=True))
