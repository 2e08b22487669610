"""Several accounts behind one endpoint: a role of another account needs the consent of both accounts."""

import json
from collections.abc import Iterator
from typing import Any, Final

import boto3
import pytest

from sim.aws_account.function_runtime import Credentials
from sim.aws_account.organization import Organization
from tests.contract.account_stage import Stage, get_error_code

pytestmark = pytest.mark.loopback
CALLER: Final = "123456789012"
OTHER: Final = "444455556666"
READER: Final = f"arn:aws:iam::{OTHER}:role/reader"
CALLERS_ROLE: Final = f"arn:aws:iam::{CALLER}:role/operators"


class Accounts:
    """Two accounts: a role `reader` in the second trusts the role `operators` of the first, with an external ID."""

    def __init__(self) -> None:
        """Create the accounts."""
        self.caller, self.reader_account = Stage(account_id=CALLER), Stage(account_id=OTHER)
        self.organization = Organization([self.caller.account, self.reader_account.account])

    def create_roles(self) -> None:
        """Create the roles, and a bucket in the second account."""
        self.caller.create_role("operators", {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": READER})
        trust = {
            "Effect": "Allow",
            "Principal": {"AWS": CALLERS_ROLE},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": "joiner-hub"}},
        }
        self.reader_account.create_role(
            "reader", {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::box*"}
        )
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        self.reader_account.get_client("iam").update_assume_role_policy(RoleName="reader", PolicyDocument=document)
        self.reader_account.get_client("s3").create_bucket(Bucket="box")

    def get_client(self, service: str, credentials: Credentials) -> Any:
        """Return a client of the common endpoint."""
        return boto3.client(
            service,
            region_name="us-east-1",
            endpoint_url=self.organization.url,
            aws_access_key_id=credentials.access_key,
            aws_secret_access_key=credentials.secret_key,
            aws_session_token=credentials.session_token,
        )

    def assume(self, role: str = READER, **arguments: str) -> Credentials:
        """Assume *role* as the role `operators`."""
        client = self.get_client("sts", self.caller.account.issue_role_credentials(CALLERS_ROLE))
        issued = client.assume_role(RoleArn=role, RoleSessionName="anna", **arguments)["Credentials"]
        return Credentials(
            access_key=issued["AccessKeyId"],
            secret_key=issued["SecretAccessKey"],
            session_token=issued["SessionToken"],
        )


@pytest.fixture
def accounts() -> Iterator[Accounts]:
    accounts = Accounts()
    with accounts.organization:
        accounts.create_roles()
        yield accounts


def test_session_of_a_role_belongs_to_the_account_of_the_role(accounts: Accounts) -> None:
    credentials = accounts.assume(ExternalId="joiner-hub")
    identity = accounts.get_client("sts", credentials).get_caller_identity()
    assert identity["Arn"] == f"arn:aws:sts::{OTHER}:assumed-role/reader/anna"
    s3 = accounts.get_client("s3", credentials)
    s3.put_object(Bucket="box", Key="a", Body=b"1")
    assert s3.get_object(Bucket="box", Key="a")["Body"].read() == b"1"
    assert accounts.caller.get_client("s3").list_buckets()["Buckets"] == []


@pytest.mark.parametrize(
    ("role", "arguments"),
    [
        (READER, {}),
        (READER, {"ExternalId": "other"}),
        (f"arn:aws:iam::{OTHER}:role/missing", {"ExternalId": "joiner-hub"}),
        ("arn:aws:iam::999999999999:role/reader", {"ExternalId": "joiner-hub"}),
    ],
    ids=["without-external-id", "wrong-external-id", "no-such-role", "no-such-account"],
)
def test_role_is_refused(accounts: Accounts, role: str, arguments: dict[str, str]) -> None:
    accounts.caller.get_client("iam").put_role_policy(
        RoleName="operators",
        PolicyName="own",
        PolicyDocument=json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        ),
    )
    assert get_error_code(lambda: accounts.assume(role, **arguments)) == "AccessDenied"


def test_role_is_refused_if_the_callers_own_account_does_not_allow_it(accounts: Accounts) -> None:
    accounts.caller.get_client("iam").delete_role_policy(RoleName="operators", PolicyName="own")
    assert get_error_code(lambda: accounts.assume(ExternalId="joiner-hub")) == "AccessDenied"


def test_key_that_no_account_issued_is_rejected(accounts: Accounts) -> None:
    unknown = Credentials(access_key="ASIAMADEUP", secret_key="", session_token="")
    assert get_error_code(accounts.get_client("sts", unknown).get_caller_identity) == "InvalidClientTokenId"
