"""Permission of `catalog` to publish the daily cost report."""

from infra.iam.policy_statement import Grant


def build_report_grants(topic: str) -> list[Grant]:
    """Return the permission to publish to *topic*; none without a topic."""
    return [Grant(sid="PublishCostReports", actions=("sns:Publish",), resources=(topic,))] if topic else []
