"""Words for people through SNS."""

from shared.aws.clients import Clients
from shared.aws.errors import faults


class SnsTopic:
    """`shared.ports.Topic` over boto3."""

    def __init__(self, clients: Clients, arn: str) -> None:
        """Speak to the topic *arn*, in the clients' region; calls nothing yet."""
        self._clients = clients
        self._arn = arn

    def publish(self, subject: str, text: str) -> None:
        """Publish, in one attempt: a repeated one might tell it twice."""
        with faults(f"sns:Publish {self._arn}"):
            self._clients.once("sns").publish(TopicArn=self._arn, Subject=subject, Message=text)
