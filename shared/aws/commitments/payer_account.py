"""The commitments of a payer account, read through an IAM role of that account.

The role is assumed for each reading, with the shortest session that AWS allows: a catalog is built once an hour, and a
longer session would only keep credentials for longer. The call goes to the regional endpoint of AWS STS.
"""

import re
from typing import Final

from shared.aws.clients import Clients, TemporaryCredentials
from shared.aws.commitments.savings_plans import BotoSavingsPlans
from shared.aws.ec2.reserved_instances import describe_reserved_instances
from shared.aws.errors import translate_errors
from shared.model.ec2.commitments import Commitments

SESSION_SECONDS: Final = 900
"""The shortest session that AssumeRole allows."""
_MAX_SESSION_NAME_LENGTH: Final = 64
_OTHER_CHARACTERS: Final = re.compile(r"[^0-9A-Za-z_+=,.@-]")


class BotoPayerAccount:
    """`shared.ports.aws.PayerAccount` over boto3."""

    def __init__(self, clients: Clients, *, role_arn: str, external_id: str, cluster: str) -> None:
        """Make no call yet; *cluster* becomes a part of the session name, which CloudTrail shows in both accounts."""
        self._clients, self._role_arn, self._external_id = clients, role_arn, external_id
        self._session_name = _OTHER_CHARACTERS.sub("-", f"joiner-{cluster}")[:_MAX_SESSION_NAME_LENGTH]

    def describe_commitments(self, region: str) -> Commitments:
        """Call AssumeRole, DescribeReservedInstances, DescribeSavingsPlans and DescribeSavingsPlanRates."""
        clients = self._clients.build_assumed_clients(self._assume_role())
        try:
            return Commitments(
                reserved=describe_reserved_instances(clients),
                plans=BotoSavingsPlans(clients).describe_savings_plans(region),
            )
        finally:
            clients.close()

    def _assume_role(self) -> TemporaryCredentials:
        external_id = {"ExternalId": self._external_id} if self._external_id else {}
        with translate_errors(f"sts:AssumeRole {self._role_arn}"):
            response = self._clients.get_retrying_client("sts").assume_role(
                RoleArn=self._role_arn,
                RoleSessionName=self._session_name,
                DurationSeconds=SESSION_SECONDS,
                **external_id,
            )
        credentials = response["Credentials"]
        return TemporaryCredentials(
            access_key_id=credentials["AccessKeyId"],
            secret_access_key=credentials["SecretAccessKey"],
            session_token=credentials["SessionToken"],
        )
