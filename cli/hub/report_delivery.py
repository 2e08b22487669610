"""Sends the daily report of many clusters to an SNS topic, with the credentials of the caller."""

import re
from typing import Final

from cli.terminal.errors import InputError
from shared.aws.clients import Clients
from shared.aws.sns import SnsTopic
from shared.errors import Fault, Forbidden, NotFound

MAX_MESSAGE_BYTES: Final = 256 * 1024
"""Maximum size of an SNS message."""
_TOPIC_PATTERN: Final = re.compile(r"arn:aws[a-z-]*:sns:([a-z0-9-]+):[0-9]{12}:[0-9A-Za-z_-]{1,256}")
_CUT_NOTE: Final = "\n\n(cut: the report is longer than an SNS message)\n"


def send_report(topic: str, subject: str, text: str) -> None:
    """Publish the report once; a report that is too long is cut, and says so.

    Raises:
        InputError: *topic* is not the ARN of a topic, or SNS does not accept the message.
    """
    match = _TOPIC_PATTERN.fullmatch(topic)
    if match is None:
        example = "arn:aws:sns:us-east-1:123456789012:reports"
        raise InputError(f"--topic {topic!r} is not the ARN of a standard SNS topic: write it as in {example}")
    clients = Clients(match[1])
    try:
        SnsTopic(clients, topic).publish(subject, _cut_text(text))
    except Fault as fault:
        raise InputError(f"the report was not sent: {fault}{_suggest_fix(fault)}") from fault
    finally:
        clients.close()


def _cut_text(text: str) -> str:
    body = text.encode()
    if len(body) <= MAX_MESSAGE_BYTES:
        return text
    return body[: MAX_MESSAGE_BYTES - len(_CUT_NOTE)].decode(errors="ignore") + _CUT_NOTE


def _suggest_fix(fault: Fault) -> str:
    if isinstance(fault, Forbidden):
        return ": your identity needs sns:Publish on the topic, and kms:GenerateDataKey and kms:Decrypt on its key"
    return ": check the ARN and the region of the topic" if isinstance(fault, NotFound) else ""
