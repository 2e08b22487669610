"""The role of docs/guide/hub.md: it allows exactly the requests of `joiner hub`, to the operators, and no write."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from cli.hub.cluster_buckets import FolderBucket
from cli.hub.summary.cluster_summary import read_cluster_summary
from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.policy import AccessDecision, evaluate_policies, parse_policy
from sim.world.memory_ports import MemoryBucket
from tests.support.hub_guide import OPERATORS, ROLE, read_policies, read_report_policy

ROOT: Final = Path(__file__).parents[3]
BUCKET_ARN: Final = "arn:aws:s3:::joiner-batch-bucket"
NOW: Final = datetime(2026, 11, 21, 9, 9, tzinfo=UTC)


def is_allowed(request: IamRequest) -> bool:
    return evaluate_policies([parse_policy(read_policies()[1])], request) is AccessDecision.ALLOWED


class CheckedBucket(MemoryBucket):
    """A bucket that evaluates the policy of the guide for each request, and records the actions."""

    actions: set[str]

    def check(self, request: IamRequest) -> None:
        assert is_allowed(request), request
        self.actions.add(request.action)

    def get(self, key: str) -> bytes:
        self.check(IamRequest(action="s3:GetObject", resource=f"{BUCKET_ARN}/{key}"))
        return super().get(key)

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        context = build_context({"s3:prefix": prefix})
        self.check(IamRequest(action="s3:ListBucket", resource=BUCKET_ARN, context=context))
        return super().list_keys(prefix)


def test_role_allows_every_request_of_the_hub() -> None:
    bucket, copy = CheckedBucket(), FolderBucket(ROOT / "examples/journal")
    bucket.actions = set()
    for key in copy.list_keys(""):
        bucket.put(key, copy.get(key))
    summary = read_cluster_summary(bucket, NOW, is_copy=False)
    assert (summary.nodes, summary.messages) == (1, ())
    assert bucket.actions == {"s3:GetObject", "s3:ListBucket"}


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("s3:PutObject", f"{BUCKET_ARN}/journal/provision/x.json"),
        ("s3:PutObject", f"{BUCKET_ARN}/commitments.json"),
        ("s3:DeleteObject", f"{BUCKET_ARN}/costs/today.json"),
        ("s3:DeleteObjectVersion", f"{BUCKET_ARN}/snapshot/x.json.gz"),
        ("s3:PutBucketPolicy", BUCKET_ARN),
        ("s3:DeleteBucket", BUCKET_ARN),
        ("s3:GetObject", f"{BUCKET_ARN}/lists/pods.json"),
        ("s3:GetObject", "arn:aws:s3:::joiner-prod-bucket/journal/provision/x.json"),
        ("s3:ListBucket", BUCKET_ARN),
        ("dynamodb:GetItem", "arn:aws:dynamodb:eu-west-1:444455556666:table/joiner-batch"),
        ("dynamodb:PutItem", "arn:aws:dynamodb:eu-west-1:444455556666:table/joiner-batch"),
        ("ec2:TerminateInstances", "arn:aws:ec2:eu-west-1:444455556666:instance/i-1"),
        ("lambda:InvokeFunction", "arn:aws:lambda:eu-west-1:444455556666:function:joiner-batch-provision"),
        ("sts:AssumeRole", "arn:aws:iam::444455556666:role/other"),
    ],
)
def test_role_denies_writes_and_everything_outside_of_the_four_prefixes(action: str, resource: str) -> None:
    assert not is_allowed(IamRequest(action=action, resource=resource))


def test_only_the_operators_with_the_external_id_may_assume_the_role() -> None:
    trust = read_policies()[0]
    statements = [{**statement, "Resource": "*"} for statement in trust["Statement"]]
    policy = parse_policy({**trust, "Statement": statements})

    def may_assume(principal: str, external_id: str) -> bool:
        context = build_context({"sts:ExternalId": external_id} if external_id else {})
        request = IamRequest(action="sts:AssumeRole", context=context, principal=principal)
        return evaluate_policies([policy], request) is AccessDecision.ALLOWED

    assert may_assume(OPERATORS, "joiner-hub")
    assert not may_assume(OPERATORS, "other")
    assert not may_assume(OPERATORS, "")
    assert not may_assume("arn:aws:iam::123456789012:role/other", "joiner-hub")


def test_operators_may_assume_only_this_role() -> None:
    policy = parse_policy(read_policies()[2])
    decisions = [
        evaluate_policies([policy], IamRequest(action="sts:AssumeRole", resource=resource))
        for resource in (ROLE, f"{ROLE}-2", "arn:aws:iam::444455556666:role/admin")
    ]
    assert [decision is AccessDecision.ALLOWED for decision in decisions] == [True, False, False]


def test_sender_of_the_daily_report_may_only_publish_to_the_topic() -> None:
    policy, topic = parse_policy(read_report_policy()), "arn:aws:sns:us-east-1:123456789012:reports"
    decisions = {
        (action, resource): evaluate_policies([policy], IamRequest(action=action, resource=resource))
        for action in ("sns:Publish", "sns:Subscribe", "sns:DeleteTopic")
        for resource in (topic, f"{topic}-2")
    }
    assert [call for call, decision in decisions.items() if decision is AccessDecision.ALLOWED] == [
        ("sns:Publish", topic)
    ]
