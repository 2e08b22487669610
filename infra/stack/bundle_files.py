"""The files of a bundle: the template, a reference to each zip file, and the cluster objects as a kustomize base.

A bundle is small enough for a Git repository: the zip files are not in it, but their names and checksums are. The same
settings and the same code give the same bytes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any, Final

import msgspec
import yaml

from infra.functions.installer import build_manifests, list_enabled_features
from infra.settings.settings import StackOptions, format_setting_name
from infra.stack.publish import BUCKET_PARAMETER, KEY_PREFIX, TEMPLATE_FILENAME, read_version
from shared.installer.manifests import Manifest, get_manifest_name, parse_manifests
from shared.stack_name import format_stack_name

INDEX_FILENAME: Final = "bundle.json"
CHECKSUMS_FILENAME: Final = "SHA256SUMS"
README_FILENAME: Final = "README.md"
README_TEMPLATE: Final = Path(__file__).with_name("bundle_readme.md")
OBJECTS_FOLDER: Final = "kubernetes"
ARGO_CD_FOLDER: Final = "argocd"
KUSTOMIZATION_FILENAME: Final = "kustomization.yaml"
CRD_KIND: Final = "CustomResourceDefinition"
CAPABILITIES: Final = ("CAPABILITY_IAM",)
"""What CloudFormation must be allowed to do: the roles of the stack have generated names."""
SYNC_WAVES: Final = {CRD_KIND: "-20"}
DEFAULT_SYNC_WAVE: Final = "-10"
"""The RBAC and the API priorities follow the CRDs, and precede NodePools in the same Application (wave 0)."""
_KUSTOMIZATION: Final = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
_ANNOTATION_POINTER: Final = "/metadata/annotations/argocd.argoproj.io~1"

Files = Mapping[str, bytes]
"""The content of each file, by its path in the bundle."""


def build_bundle(options: StackOptions, template: bytes, zip_files: Iterable[Path]) -> dict[str, bytes]:
    """Return the files of the bundle of one cluster.

    *template* is the template of the stack, *zip_files* are the files that it names.
    """
    manifests = parse_manifests(build_manifests(options))
    object_files = {_build_object_path(manifest): _encode_yaml(manifest) for manifest in manifests}
    files = {
        TEMPLATE_FILENAME: template,
        **object_files,
        f"{OBJECTS_FOLDER}/{KUSTOMIZATION_FILENAME}": _encode_yaml(_build_base(object_files)),
        f"{ARGO_CD_FOLDER}/{KUSTOMIZATION_FILENAME}": _encode_yaml(_build_argo_cd_overlay(manifests)),
    }
    index = _build_index(options, files, manifests, sorted(zip_files))
    files[INDEX_FILENAME] = _encode_json(index)
    files[README_FILENAME] = _render_readme(index)
    files[CHECKSUMS_FILENAME] = _format_checksums(files).encode()
    return dict(sorted(files.items()))


def format_bundle_name(cluster: str) -> str:
    """Return the name of the bundle of *cluster*, with the version."""
    return f"joiner-bundle-{cluster}-{read_version()}"


def _build_object_path(manifest: Manifest) -> str:
    return f"{OBJECTS_FOLDER}/{manifest['kind'].lower()}-{get_manifest_name(manifest)}.yaml"


def _build_base(object_paths: Iterable[str]) -> dict[str, Any]:
    """Return the kustomize base with all objects, in the order in which the installer creates them."""
    resources = [path.removeprefix(f"{OBJECTS_FOLDER}/") for path in object_paths]
    return {**_KUSTOMIZATION, "sortOptions": {"order": "fifo"}, "resources": resources}


def _build_argo_cd_overlay(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Return the overlay that adds sync waves, and keeps Argo CD from deleting CRDs: their objects would go, too."""
    patches = []
    for kind in dict.fromkeys(manifest["kind"] for manifest in manifests):
        annotations = {"sync-wave": SYNC_WAVES.get(kind, DEFAULT_SYNC_WAVE)}
        if kind == CRD_KIND:
            annotations["sync-options"] = "Prune=false,Delete=false"
        operations = [
            {"op": "add", "path": f"{_ANNOTATION_POINTER}{name}", "value": value} for name, value in annotations.items()
        ]
        patches.append({"target": {"kind": kind}, "patch": yaml.safe_dump(operations, sort_keys=False)})
    return {**_KUSTOMIZATION, "resources": [f"../{OBJECTS_FOLDER}"], "patches": patches}


def _build_index(
    options: StackOptions, files: Files, manifests: Sequence[Manifest], zip_files: Sequence[Path]
) -> dict[str, Any]:
    document = json.loads(files[TEMPLATE_FILENAME])
    assets = [_describe_file(path.name, path.read_bytes()) for path in zip_files]
    digest = sha256(_format_checksums(files).encode())
    digest.update("".join(asset["sha256"] for asset in assets).encode())
    return {
        "apiVersion": "joiner/v1",
        "kind": "Bundle",
        "version": read_version(),
        "digest": digest.hexdigest(),
        "cluster": options.cluster,
        "account": options.account,
        "region": options.region,
        "clusterObjects": options.cluster_objects,
        "optionalPermissions": [format_setting_name(feature) for feature in sorted(list_enabled_features(options))],
        "stack": {
            "name": format_stack_name(options.cluster),
            "capabilities": list(CAPABILITIES),
            "parameters": {name: value["Type"] for name, value in document["Parameters"].items()},
            "outputs": sorted(document["Outputs"]),
            "template": _describe_file(TEMPLATE_FILENAME, files[TEMPLATE_FILENAME]),
        },
        "assets": [{**asset, "key": f"{KEY_PREFIX}{asset['file']}"} for asset in assets],
        "objects": [
            {
                "apiVersion": manifest["apiVersion"],
                "kind": manifest["kind"],
                "name": get_manifest_name(manifest),
                **_describe_file(path := _build_object_path(manifest), files[path]),
            }
            for manifest in manifests
        ],
    }


def _describe_file(path: str, content: bytes) -> dict[str, Any]:
    return {"file": path, "sha256": sha256(content).hexdigest(), "bytes": len(content)}


def _format_checksums(files: Files) -> str:
    """Return a line for each file, as `sha256sum --check` reads them in the folder of the bundle."""
    return "".join(f"{sha256(content).hexdigest()}  {path}\n" for path, content in sorted(files.items()))


def _render_readme(index: Mapping[str, Any]) -> bytes:
    values = {
        "cluster": index["cluster"],
        "version": index["version"],
        "digest": index["digest"],
        "stack": index["stack"]["name"],
        "parameter": BUCKET_PARAMETER,
        "prefix": KEY_PREFIX,
        "template": TEMPLATE_FILENAME,
        "cluster_objects": index["clusterObjects"],
        "permissions": ", ".join(f"`{name}`" for name in index["optionalPermissions"]) or "none",
        "assets": "\n".join(f"   | `{asset['key']}` | {asset['bytes']:,} |" for asset in index["assets"]),
        "objects": "\n".join(f"| {entry['kind']} | {entry['name']} |" for entry in index["objects"]),
    }
    return Template(README_TEMPLATE.read_text(encoding="utf-8")).substitute(values).encode()


def _encode_json(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _encode_yaml(document: object) -> bytes:
    return bytes(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), "utf-8")
