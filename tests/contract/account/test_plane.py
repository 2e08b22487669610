"""A real API server asks the account which tokens to accept."""

from collections.abc import Iterator

import pytest

from shared.errors import Forbidden
from shared.kubernetes.client import KubeClient
from tests.contract.account.test_authentication import deploy_access_entry, make_token
from tests.contract.account_stage import Stage
from tests.controlplane.plane import API_ONLY, ControlPlane

pytestmark = [pytest.mark.controlplane, pytest.mark.loopback]
NODES = "/api/v1/nodes"
RIGHTS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture
def plane(stage: Stage) -> Iterator[ControlPlane]:
    with ControlPlane(parts=API_ONLY, authenticator=stage.account.authenticator_url) as control_plane:
        yield control_plane


def test_api_server_accepts_only_tokens_with_an_access_entry_in_the_stack(stage: Stage, plane: ControlPlane) -> None:
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    credentials = deploy_access_entry(stage, AccessPolicies=[{"PolicyArn": policy, "AccessScope": {"Type": "cluster"}}])
    as_admin = connect(plane, make_token(stage, credentials))
    assert b'"NodeList"' in as_admin.list(NODES)

    deploy_access_entry(stage, AccessPolicies=[], KubernetesGroups=["joiner:functions"])
    with pytest.raises(Forbidden, match="assumed-role/worker/tick"):
        connect(plane, make_token(stage, stage.account.issue_role_credentials(ROLE, "tick"))).list(NODES)

    deploy_access_entry(stage)
    with pytest.raises(Forbidden, match="401"):
        connect(plane, make_token(stage, stage.account.issue_role_credentials(ROLE, "tick"))).list(NODES)


ROLE = "arn:aws:iam::123456789012:role/worker"


def connect(plane: ControlPlane, bearer_token: str) -> KubeClient:
    return plane.get_client(bearer_token)
