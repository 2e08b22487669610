"""What an API server forgets: the tokens of lists that were read too slowly."""

import time

import pytest

from shared.errors import Expired
from tests.contract.kube_front import create, listed
from tests.controlplane.plane import API_ONLY, ControlPlane

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

NAMESPACES = "/api/v1/namespaces"


def test_a_token_of_a_compacted_list_is_expired() -> None:
    with ControlPlane(parts=API_ONLY, api_server_flags=["--etcd-compaction-interval=1s"]) as plane:
        kube = plane.client()
        token = listed(kube, NAMESPACES, limit=1)["metadata"]["continue"]

        def read_on_slowly() -> None:
            for _ in range(150):
                create(kube, NAMESPACES, {"metadata": {"generateName": "busy-"}})
                kube.list(NAMESPACES, limit=1, continue_token=token)
                time.sleep(0.2)

        with pytest.raises(Expired, match="410"):
            read_on_slowly()
        assert listed(kube, NAMESPACES, limit=1)["items"]
