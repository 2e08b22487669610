"""Notifications through SNS."""

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors


class SnsTopic:
    """`shared.ports.messaging.Topic` over boto3."""

    def __init__(self, clients: Clients, arn: str) -> None:
        """Publish to the topic *arn*, in the clients' region; no call is made yet."""
        self._clients = clients
        self._arn = arn

    def publish(self, subject: str, text: str) -> None:
        """Call Publish, in one attempt: a repeated attempt might deliver the message twice."""
        with translate_errors(f"sns:Publish {self._arn}"):
            self._clients.get_single_attempt_client("sns").publish(TopicArn=self._arn, Subject=subject, Message=text)
