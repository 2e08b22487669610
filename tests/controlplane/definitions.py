"""Joiner's CRDs in a real API server."""

from collections.abc import Iterable
from typing import Any

import msgspec

from shared.crds.definitions import read_crds
from shared.errors import NotFound
from shared.ports.kubernetes import Kube
from tests.controlplane.plane import ControlPlane

CRDS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_crds(plane: ControlPlane, texts: Iterable[str] | None = None) -> tuple[str, ...]:
    """Create the CRDs in *texts* (YAML; None: Joiner's) and return their names once all are served."""
    kube = plane.get_client()
    crds = [msgspec.yaml.decode(text) for text in (read_crds() if texts is None else texts)]
    for crd in crds:
        kube.create(CRDS_PATH, msgspec.json.encode(crd))
    for crd in crds:
        wait_until_served(plane, kube, crd)
    return tuple(definition["metadata"]["name"] for definition in crds)


def wait_until_served(plane: ControlPlane, kube: Kube, definition: dict[str, Any]) -> None:
    """Wait until *definition* is Established and its collection can be listed, which is later."""
    spec = definition["spec"]
    collection = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    plane.wait_until(lambda: bool(kube.list(collection, limit=1)), f"{definition['metadata']['name']} to be served")


def is_established(kube: Kube, name: str) -> bool:
    """Return whether the CRD *name* exists and is Established."""
    try:
        status = msgspec.json.decode(kube.read(f"{CRDS_PATH}/{name}")).get("status") or {}
    except NotFound:
        return False
    return any(
        condition["type"] == "Established" and condition["status"] == "True"
        for condition in status.get("conditions") or ()
    )
