"""A real API server asks the account whom it may let in."""

from collections.abc import Iterator

import pytest

from shared.errors import Forbidden
from shared.kube.client import KubeClient
from tests.contract.account_stage import Stage
from tests.contract.test_account_authentication import entry, token
from tests.controlplane.plane import API_ONLY, ControlPlane

pytestmark = [pytest.mark.controlplane, pytest.mark.loopback]
NODES = "/api/v1/nodes"
RIGHTS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture
def plane(stage: Stage) -> Iterator[ControlPlane]:
    with ControlPlane(parts=API_ONLY, authenticator=stage.account.authenticator_url) as made:
        yield made


def test_the_api_server_lets_in_whom_the_stack_named(stage: Stage, plane: ControlPlane) -> None:
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    given = entry(stage, AccessPolicies=[{"PolicyArn": policy, "AccessScope": {"Type": "cluster"}}])
    as_admin = client(plane, token(stage, given))
    assert b'"NodeList"' in as_admin.list(NODES)

    entry(stage, AccessPolicies=[], KubernetesGroups=["joiner:functions"])
    with pytest.raises(Forbidden, match="assumed-role/worker/tick"):
        client(plane, token(stage, stage.account.credentials_of(ROLE, "tick"))).list(NODES)

    entry(stage)
    with pytest.raises(Forbidden, match="401"):
        client(plane, token(stage, stage.account.credentials_of(ROLE, "tick"))).list(NODES)


ROLE = "arn:aws:iam::123456789012:role/worker"


def client(plane: ControlPlane, said: str) -> KubeClient:
    return plane.client(said)
