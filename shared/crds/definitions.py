"""The CustomResourceDefinitions that Joiner installs."""

from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import msgspec


def list_crd_paths() -> tuple[Traversable, ...]:
    """Return the paths of the CRD YAML files, one CRD each, sorted by name."""
    crd_paths = (path for path in files("shared.crds").joinpath("manifests").iterdir() if path.name.endswith(".yaml"))
    return tuple(sorted(crd_paths, key=lambda path: path.name))


def read_crds() -> tuple[str, ...]:
    """Return the CRDs as YAML text, in the order of `list_crd_paths`."""
    return tuple(path.read_text(encoding="utf-8") for path in list_crd_paths())


Object = dict[str, Any]
"""An object in its JSON form. Never changed in place: a write stores a new dict."""


@lru_cache(maxsize=1)
def load_shipped_crds() -> tuple[Object, ...]:
    """Return the CRDs we ship, sorted by name."""
    return tuple(msgspec.yaml.decode(text) for text in read_crds())
