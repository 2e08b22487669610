"""The buckets of `joiner hub` in an embedded organization: read with an assumed role, or as the caller."""

import json
from collections.abc import Iterator

import pytest

from cli.hub.cluster_buckets import open_cluster_bucket
from cli.hub.hub_file import HubCluster
from shared.errors import Forbidden, NotFound
from sim.aws_account.organization import Organization
from tests.contract.account_stage import Stage
from tests.support.hub_guide import ACCOUNT, BUCKET, ROLE, read_policies

pytestmark = pytest.mark.loopback


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stage, Stage]]:
    """The accounts of the operators and of the cluster, with the roles of the guide."""
    operators, cluster = Stage(), Stage(account_id=ACCOUNT)
    with Organization([operators.account, cluster.account]) as organization:
        trust, permissions, assume = read_policies()
        caller = operators.create_role("operators", *assume["Statement"])
        iam = cluster.get_client("iam")
        iam.create_role(RoleName="joiner-hub", AssumeRolePolicyDocument=json.dumps(trust))
        iam.put_role_policy(RoleName="joiner-hub", PolicyName="read", PolicyDocument=json.dumps(permissions))
        cluster.get_client("s3").create_bucket(Bucket=BUCKET)
        cluster.get_client("s3").put_object(Bucket=BUCKET, Key="journal/watch/a.json", Body=b"{}")
        credentials = operators.account.issue_role_credentials(caller)
        for name, value in {**credentials.build_environment(), "AWS_ENDPOINT_URL": organization.url}.items():
            monkeypatch.setenv(name, value)
        yield operators, cluster


def make_cluster(**fields: str) -> HubCluster:
    return HubCluster(name="batch", bucket=BUCKET, region="us-east-1", **fields)


@pytest.mark.usefixtures("accounts")
def test_bucket_is_read_with_the_role() -> None:
    with open_cluster_bucket(make_cluster(role=ROLE, external_id="joiner-hub")) as bucket:
        assert bucket.list_keys("journal/") == ("journal/watch/a.json",)
        assert bucket.get("journal/watch/a.json") == b"{}"
        with pytest.raises(Forbidden, match="s3:ListBucket"):
            bucket.list_keys("lists/")
        with pytest.raises(NotFound):
            bucket.get("journal/missing.json")


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("fields", [{"role": ROLE}, {"role": ROLE, "external_id": "other"}, {"role": f"{ROLE}-2"}])
def test_refused_role_is_forbidden(fields: dict[str, str]) -> None:
    with pytest.raises(Forbidden, match="sts:AssumeRole"), open_cluster_bucket(make_cluster(**fields)):
        pass


def test_without_a_role_the_credentials_of_the_caller_are_used(accounts: tuple[Stage, Stage]) -> None:
    operators, _ = accounts
    with open_cluster_bucket(make_cluster()) as bucket, pytest.raises(Forbidden, match="assumed-role/operators"):
        bucket.list_keys("journal/")
    policy = read_policies()[1]
    operators.get_client("iam").put_role_policy(
        RoleName="operators", PolicyName="read", PolicyDocument=json.dumps(policy)
    )
    operators.get_client("s3").create_bucket(Bucket="own")
    with open_cluster_bucket(make_cluster()) as bucket, pytest.raises(NotFound):
        bucket.get("journal/missing.json")
