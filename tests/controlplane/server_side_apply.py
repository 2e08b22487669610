"""`kubectl apply --server-side`, as Argo CD and Terraform apply, and the fields that a field manager has written."""

import fnmatch
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tests.controlplane.binaries import KUBECTL, ensure_programs

ARGO_CD_MANAGER: Final = "argocd-controller"
JOINER_MANAGER: Final = "joiner"
"""The user agent of Joiner's requests, which the API server uses as the field manager of a merge patch."""
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "guide" / "gitops.md"
_ROW: Final = re.compile(r"^\| (?P<kinds>[A-Za-z0-9, ]+?) \| (?P<fields>`.+`.*?) \| .* \|$", re.MULTILINE)


class ApplyFailed(AssertionError):
    """kubectl failed, for example because of a conflict between field managers."""


class ServerSideApplier:
    """kubectl with a kubeconfig and a field manager; a conflict is an error, as without `--force-conflicts`."""

    def __init__(self, kubeconfig: Path, manager: str = ARGO_CD_MANAGER) -> None:
        """Apply with the kubeconfig in the file *kubeconfig*, as *manager*."""
        self._command = (str(ensure_programs((KUBECTL,)) / KUBECTL), f"--kubeconfig={kubeconfig}")
        self._manager = manager

    def build(self, folder: Path) -> list[dict[str, Any]]:
        """Return the objects of the kustomization in *folder*, as kustomize builds them."""
        return list(yaml.safe_load_all(self._run("kustomize", str(folder))))

    def apply_kustomization(self, folder: Path) -> str:
        """Apply the kustomization in *folder*; return the output of kubectl."""
        return self._apply("-k", str(folder))

    def apply_objects(self, manifests: Iterable[Mapping[str, Any]]) -> str:
        """Apply *manifests*; return the output of kubectl."""
        return self._apply("-f", "-", text=yaml.safe_dump_all([dict(manifest) for manifest in manifests]))

    def _apply(self, *words: str, text: str = "") -> str:
        return self._run("apply", "--server-side", f"--field-manager={self._manager}", *words, text=text)

    def _run(self, *words: str, text: str = "") -> str:
        process = subprocess.run([*self._command, *words], input=text, capture_output=True, text=True, check=False)
        if process.returncode:
            raise ApplyFailed(f"kubectl {' '.join(words)}: {process.stderr}")
        return process.stdout


def list_fields(manifest: Mapping[str, Any], manager: str) -> frozenset[str]:
    """Return the paths of the fields that *manager* owns in *manifest*, as ``spec.replicas``."""
    entries = manifest["metadata"].get("managedFields", ())
    return frozenset(
        path for entry in entries if entry["manager"] == manager for path in _iterate_paths(entry["fieldsV1"])
    )


def _iterate_paths(fields: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the path of each leaf; the items of a list count as the list."""
    children = {key.removeprefix("f:"): value for key, value in fields.items() if key.startswith("f:")}
    if not children:
        yield prefix
    for key, value in children.items():
        yield from _iterate_paths(value, f"{prefix}.{key}" if prefix else key)


def read_documented_fields() -> dict[str, tuple[str, ...]]:
    """Return the patterns of the fields that Joiner writes, by kind, from the table of the guide."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Fields that Joiner writes\n")[2].partition("\n## ")[0]
    fields: dict[str, tuple[str, ...]] = {}
    for row in _ROW.finditer(section):
        for kind in row["kinds"].split(", "):
            fields[kind] = (*fields.get(kind, ()), *re.findall(r"`([^`]+)`", row["fields"]))
    return fields


def find_undocumented_fields(manifest: Mapping[str, Any], documented: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the fields of *manifest* that Joiner has written, and that the guide does not list for its kind."""
    patterns = documented.get(manifest["kind"], ())
    return {
        path
        for path in list_fields(manifest, JOINER_MANAGER)
        if not any(fnmatch.fnmatchcase(path, pattern) or path.startswith(f"{pattern}.") for pattern in patterns)
    }


def decode_object(body: bytes) -> dict[str, Any]:
    """Return the object in the response *body*."""
    document: dict[str, Any] = msgspec.json.decode(body)
    return document
