"""The part of kustomize that a bundle uses: resources, bases, and JSON patches by kind.

`tests/kubernetes/cli/test_bundle.py` compares its results with those of kubectl.
"""

import copy
from pathlib import Path
from typing import Any

import yaml

Json = Any
"""Any JSON value."""


def build_overlay(folder: Path) -> list[dict[str, Json]]:
    """Return the objects of the kustomization in *folder*, patched, in the order of its resources."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    objects: list[dict[str, Json]] = []
    for resource in kustomization["resources"]:
        path = folder / resource
        objects += build_overlay(path) if path.is_dir() else [yaml.safe_load(path.read_text())]
    for patch in kustomization.get("patches", ()):
        operations = yaml.safe_load(patch["patch"])
        objects = [
            apply_json_patch(manifest, operations) if manifest["kind"] == patch["target"]["kind"] else manifest
            for manifest in objects
        ]
    return objects


def apply_json_patch(manifest: dict[str, Json], operations: list[dict[str, Json]]) -> dict[str, Json]:
    """Return *manifest* with the `add` *operations* of RFC 6902 applied.

    Raises:
        ValueError: an operation is not `add`.
        KeyError: a parent of the path does not exist.
    """
    patched = copy.deepcopy(manifest)
    for operation in operations:
        if operation["op"] != "add":
            raise ValueError(f"only add is supported: {operation}")
        *parents, name = (word.replace("~1", "/").replace("~0", "~") for word in operation["path"].split("/")[1:])
        target = patched
        for parent in parents:
            target = target[parent]
        target[name] = operation["value"]
    return patched
