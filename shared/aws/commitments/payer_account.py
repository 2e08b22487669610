"""The commitments of a payer account, read through an IAM role of that account."""

from shared.aws.clients import Clients, assume_role
from shared.aws.commitments.savings_plans import BotoSavingsPlans
from shared.aws.ec2.reserved_instances import describe_reserved_instances
from shared.model.ec2.commitments import Commitments


class BotoPayerAccount:
    """`shared.ports.aws.PayerAccount` over boto3."""

    def __init__(self, clients: Clients, *, role_arn: str, external_id: str, cluster: str) -> None:
        """Make no call yet; *cluster* becomes a part of the session name, which CloudTrail shows in both accounts."""
        self._clients, self._role_arn, self._external_id = clients, role_arn, external_id
        self._session_name = f"joiner-{cluster}"

    def describe_commitments(self, region: str) -> Commitments:
        """Call AssumeRole, DescribeReservedInstances, DescribeSavingsPlans and DescribeSavingsPlanRates."""
        credentials = assume_role(self._clients, self._role_arn, self._external_id, self._session_name)
        clients = self._clients.build_assumed_clients(credentials)
        try:
            return Commitments(
                reserved=describe_reserved_instances(clients),
                plans=BotoSavingsPlans(clients).describe_savings_plans(region),
            )
        finally:
            clients.close()
