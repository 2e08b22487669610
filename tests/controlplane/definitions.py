"""Our CustomResourceDefinitions in a real API server."""

from collections.abc import Iterable
from typing import Any

import msgspec

from shared.errors import Gone
from shared.kube.definitions import definitions
from shared.ports import Kube
from tests.controlplane.plane import ControlPlane

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install(plane: ControlPlane, texts: Iterable[str] | None = None) -> tuple[str, ...]:
    """Create the definitions in *texts* (YAML; None: ours), and answer their names once all are served."""
    kube = plane.client()
    made = [msgspec.yaml.decode(text) for text in (definitions() if texts is None else texts)]
    for definition in made:
        kube.create(DEFINITIONS, msgspec.json.encode(definition))
    for definition in made:
        wait_until_served(plane, kube, definition)
    return tuple(definition["metadata"]["name"] for definition in made)


def wait_until_served(plane: ControlPlane, kube: Kube, definition: dict[str, Any]) -> None:
    """Wait until *definition* is Established, and its collection answers: the one comes before the other."""
    spec = definition["spec"]
    collection = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    plane.wait_for(lambda: bool(kube.list(collection, limit=1)), f"{definition['metadata']['name']} to be served")


def is_established(kube: Kube, name: str) -> bool:
    """Say whether the definition *name* is there and Established."""
    try:
        status = msgspec.json.decode(kube.read(f"{DEFINITIONS}/{name}")).get("status") or {}
    except Gone:
        return False
    return any(each["type"] == "Established" and each["status"] == "True" for each in status.get("conditions") or ())
