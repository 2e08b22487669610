"""SSM Parameter Store."""

from shared.aws.clients import Clients
from shared.aws.errors import faults


class BotoParameters:
    """`shared.ports.Parameters` over boto3."""

    def __init__(self, clients: Clients) -> None:
        """Calls nothing yet."""
        self._clients = clients

    def parameter(self, name: str) -> str:
        """Answer the value.

        Raises:
            Gone: there is no such parameter.
        """
        with faults(f"ssm:GetParameter {name}"):
            return str(self._clients.patient("ssm").get_parameter(Name=name)["Parameter"]["Value"])
