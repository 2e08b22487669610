"""The CustomResourceDefinitions we ship: Karpenter's v1 kinds, compatible field for field."""

from importlib.resources import files
from importlib.resources.abc import Traversable


def paths() -> tuple[Traversable, ...]:
    """Answer the YAML files, one definition each, sorted by name."""
    found = (each for each in files("shared.kube").joinpath("crds").iterdir() if each.name.endswith(".yaml"))
    return tuple(sorted(found, key=lambda each: each.name))


def definitions() -> tuple[str, ...]:
    """Answer the definitions as YAML text, in the order of `paths`."""
    return tuple(each.read_text(encoding="utf-8") for each in paths())
