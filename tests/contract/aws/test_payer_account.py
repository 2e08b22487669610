"""The commitments of a payer account, over HTTP: the role is assumed at the regional endpoint, and errors name it."""

from typing import Any

import pytest

from shared.aws.clients import SESSION_SECONDS, Clients
from shared.aws.commitments.payer_account import BotoPayerAccount
from shared.errors import Forbidden
from shared.model.ec2.commitments import Commitments
from sim.cloud.cloud import Cloud
from sim.cloud.resources.payer_role import PAYER_ACCOUNT_ID
from sim.time.virtual_clock import Clock
from tests.contract.http_face import get_clients, get_embedded_aws
from tests.infra.iam.payer_policies import DOCUMENTED_EXTERNAL_ID, build_permissions_policy, build_trust_policy

CALLER = "arn:aws:iam::111122223333:role/catalog"
ROLE = f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/joiner-commitments"


def make_payer(external_id: str = DOCUMENTED_EXTERNAL_ID, cluster: str = "prod", role: str = ROLE) -> BotoPayerAccount:
    return BotoPayerAccount(get_clients(), role_arn=role, external_id=external_id, cluster=cluster)


def make_cloud(trust_policy: dict[str, Any] | None = None) -> Cloud:
    cloud = Cloud(Clock())
    get_embedded_aws().reset(cloud)
    cloud.payer.create_role(
        "joiner-commitments", trust_policy or build_trust_policy(CALLER), build_permissions_policy()
    )
    return cloud


@pytest.mark.loopback
def test_commitments_of_the_payer_account_are_read_and_not_those_of_the_own_account() -> None:
    cloud = make_cloud()
    now = cloud.clock.get_time()
    reserved = cloud.payer.commitments.add_reserved("m5.large", 3, now)
    plan = cloud.payer.commitments.add_plan(2.0, now)
    cloud.commitments.add_plan(1.0, now)
    counts = get_clients().get_call_counts()
    commitments = make_payer().describe_commitments(cloud.region)
    assert commitments.plans == (plan,)
    assert [(item.reservation_id, item.count) for item in commitments.reserved] == [(reserved.reservation_id, 3)]
    new_counts = get_clients().get_call_counts()
    assert new_counts["sts:AssumeRole"] == counts.get("sts:AssumeRole", 0) + 1
    assert new_counts["savingsplans:DescribeSavingsPlans"] > counts.get("savingsplans:DescribeSavingsPlans", 0)


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("external_id", "role"),
    [("another", ROLE), ("", ROLE), (DOCUMENTED_EXTERNAL_ID, f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/other")],
)
def test_refused_role_is_an_error_that_names_it(external_id: str, role: str) -> None:
    make_cloud()
    with pytest.raises(Forbidden, match=rf"sts:AssumeRole {role}: AccessDenied"):
        make_payer(external_id, role=role).describe_commitments("us-east-1")


@pytest.mark.loopback
def test_role_without_an_external_id_needs_none() -> None:
    cloud = make_cloud(build_trust_policy(CALLER, ""))
    assert make_payer("").describe_commitments(cloud.region) == Commitments()


def test_request_has_the_shortest_session_and_a_valid_session_name(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[dict[str, Any]] = []

    class RecordedSts:
        """Refuses AssumeRole after it has recorded the request."""

        def assume_role(self, **request: Any) -> None:
            requests.append(request)
            raise Forbidden("no")

    clients = Clients("eu-west-1")
    monkeypatch.setattr(clients, "get_retrying_client", lambda *_: RecordedSts())
    payer = BotoPayerAccount(clients, role_arn=ROLE, external_id="", cluster="prod " + "x" * 80)
    with pytest.raises(Forbidden):
        payer.describe_commitments("eu-west-1")
    [request] = requests
    assert request == {
        "RoleArn": ROLE,
        "RoleSessionName": ("joiner-prod-" + "x" * 80)[:64],
        "DurationSeconds": SESSION_SECONDS,
    }


def test_role_is_assumed_at_the_regional_endpoint() -> None:
    client = Clients("eu-west-1").get_retrying_client("sts")
    assert client.meta.endpoint_url == "https://sts.eu-west-1.amazonaws.com"
