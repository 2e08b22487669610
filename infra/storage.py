"""Storage for state that neither the cluster nor EC2 can hold.

A table holds data that must be consistent, a bucket holds large data.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.settings.settings import StackOptions

JOURNAL_PREFIX: Final = "journal/"
SNAPSHOT_PREFIX: Final = "snapshot/"
"""The snapshots from which the decisions in the journal were made."""
CATALOG_PREFIX: Final = "catalogue/"
MARKET_PREFIX: Final = "market/"
COST_REPORT_PREFIX: Final = "costs/"
LIST_PREFIX: Final = "lists/"
"""The lists that functions store for each other, with the setting `shared-cache`."""
COST_REPORT_DAYS: Final = 400
"""Retention of a daily report, so that a month can be compared with the same month of the previous year."""
CATALOG_DAYS: Final = 90
"""Retention of the newest catalog, long after it would be too old to use, so that a fault of Joiner cannot delete
the last one. Decisions made with a catalog of that age can be replayed while the journal is kept, so older
catalogs are kept for that time in addition.
"""


class State(Construct):
    """The table and the bucket."""

    def __init__(self, scope: Construct, construct_id: str, *, options: StackOptions) -> None:
        """Create both. The table is deleted with the stack; the bucket is retained, because it holds the journal.

        Only a first deployment that fails deletes the bucket too: it is still empty.
        """
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
            lifecycle_rules=self._build_lifecycle_rules(options.journal_days, options.snapshot_days),
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        cdk.Validations.of(self.bucket).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason=(
                    "only the functions of this stack access the bucket, and the journal in it records their actions"
                ),
            )
        )

    @staticmethod
    def _build_lifecycle_rules(journal_days: int, snapshot_days: int) -> list[s3.LifecycleRule]:
        return [
            s3.LifecycleRule(
                id="journal",
                prefix=JOURNAL_PREFIX,
                expiration=cdk.Duration.days(journal_days),
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(
                id="snapshots",
                prefix=SNAPSHOT_PREFIX,
                expiration=cdk.Duration.days(min(snapshot_days, journal_days)),
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(
                id="catalogue",
                prefix=CATALOG_PREFIX,
                expiration=cdk.Duration.days(CATALOG_DAYS + journal_days),
                noncurrent_version_expiration=cdk.Duration.days(CATALOG_DAYS),
            ),
            s3.LifecycleRule(
                id="market",
                prefix=MARKET_PREFIX,
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(
                id="costs",
                prefix=COST_REPORT_PREFIX,
                expiration=cdk.Duration.days(COST_REPORT_DAYS),
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(
                id="lists",
                prefix=LIST_PREFIX,
                expiration=cdk.Duration.days(1),
                noncurrent_version_expiration=cdk.Duration.days(1),
            ),
            s3.LifecycleRule(id="fragments", abort_incomplete_multipart_upload_after=cdk.Duration.days(1)),
        ]
