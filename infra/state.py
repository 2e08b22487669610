"""State that neither the cluster nor EC2 can hold: a table for what must be exact, a bucket for what is large."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.knobs import Knobs

JOURNAL: Final = "journal/"
SNAPSHOTS: Final = "snapshot/"
"""What decisions of the journal were made from."""
CATALOGUE: Final = "catalogue/"
MARKET: Final = "market/"
COSTS: Final = "costs/"
COSTS_DAYS: Final = 400
"""Of a daily report: this month can be held against that of last year."""
CATALOGUE_DAYS: Final = 90
"""Long after the newest catalogue would be too old to be trusted: no fault of ours may leave none. What was decided
with one that old can be decided again for as long as the journal lasts: it stays for that time more."""


class State(Construct):
    """Table and bucket."""

    def __init__(self, scope: Construct, construct_id: str, *, knobs: Knobs) -> None:
        """Make both. The table's rows are worthless without the stack; the bucket outlives it for its journal."""
        super().__init__(scope, construct_id)
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expires",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            versioned=True,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            lifecycle_rules=self._lifecycle_rules(knobs.journal_days, knobs.snapshot_days),
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        cdk.Validations.of(self.bucket).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="only the functions of this stack read and write it, and what they do is in the journal itself",
            )
        )

    @staticmethod
    def _lifecycle_rules(journal_days: int, snapshot_days: int) -> list[s3.LifecycleRule]:
        return [
            s3.LifecycleRule(
                id="journal",
                prefix=JOURNAL,
                expiration=cdk.Duration.days(journal_days),
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(
                id="snapshots",
                prefix=SNAPSHOTS,
                expiration=cdk.Duration.days(min(snapshot_days, journal_days)),
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(
                id="catalogue",
                prefix=CATALOGUE,
                expiration=cdk.Duration.days(CATALOGUE_DAYS + journal_days),
                noncurrent_version_expiration=cdk.Duration.days(CATALOGUE_DAYS),
            ),
            s3.LifecycleRule(
                id="market",
                prefix=MARKET,
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(
                id="costs",
                prefix=COSTS,
                expiration=cdk.Duration.days(COSTS_DAYS),
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(id="fragments", abort_incomplete_multipart_upload_after=cdk.Duration.days(1)),
        ]
