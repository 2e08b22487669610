"""Paths into the parameters of a request: ``LaunchTemplateConfigs[].Overrides[].InstanceType``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

Selector: TypeAlias = Callable[[Mapping[str, Any]], Iterable[Any]]


@cache
def compile_path(path: str) -> Selector:
    """Return a function that yields all values at *path*; ``[]`` selects each element of a list.

    >>> list(compile_path("A[].B")({"A": [{"B": 1}, {}, {"B": 2}]}))
    [1, 2]
    """
    steps = tuple((step.removesuffix("[]"), step.endswith("[]")) for step in path.split("."))

    def select(parameters: Mapping[str, Any]) -> Iterator[Any]:
        return _select_values(parameters, steps)

    return select


def _select_values(value: Any, steps: tuple[tuple[str, bool], ...]) -> Iterator[Any]:  # noqa: ANN401 - any parameter
    if not steps:
        yield value
        return
    (name, is_list), *following_steps = steps
    if not isinstance(value, Mapping) or value.get(name) is None:
        return
    for element in value[name] if is_list else (value[name],):
        yield from _select_values(element, tuple(following_steps))
