"""The SQS queues: a follow-up queue for each function that requests further runs, and a queue for EC2 events.

`MessageQueue` finds a follow-up queue by its URL, which is a prefix and the name of the function. No function refers to
the queue of another function, and a new function needs no new setting. Messages that fail repeatedly end in one
dead-letter queue, for an operator to inspect.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions.functions import Functions, FunctionSpec

FOLLOW_UP_BATCH_SIZE: Final = 10
MAX_FOLLOW_UP_CONCURRENCY: Final = 2
"""The minimum that Lambda allows.

Only one invocation works, because of the lease; a second one reports this and ends.
"""
VISIBILITY_TIMEOUT_FACTOR: Final = 6
"""Visibility timeout as a multiple of the function's timeout, as AWS recommends because Lambda retries while
throttled.
"""
INTERRUPTION_VISIBILITY_TIMEOUT: Final = cdk.Duration.seconds(30)
"""Longer than timeout and batching window together, but shorter than recommended: a spot instance is terminated two
minutes after its warning, and a second attempt must come sooner.
"""
MAX_INTERRUPTIONS_PER_BATCH: Final = 100
"""Messages per invocation: as many Nodes are tainted in about a second, and one plan is made for all of them."""
INTERRUPTION_BATCHING_WINDOW: Final = cdk.Duration.seconds(1)
"""How long messages are collected: the minimum for batches larger than ten, out of a warning time of two minutes."""
MAX_INTERRUPTION_CONCURRENCY: Final = 5
"""Concurrent invocations for interruption messages; while all are busy, new messages make the next batches larger."""
MAX_RECEIVE_COUNT: Final = 5
READ_ACTIONS: Final = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
"""What Lambda does with a queue on behalf of the function that reads it: as in AWSLambdaSQSQueueExecutionRole."""


class Queues(Construct):
    """Queues for follow-ups, interruptions and dead letters; all encrypted, and accessible with TLS only."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, specs: tuple[FunctionSpec, ...]) -> None:
        """Create the queues, named ``<cluster>-joiner-<function>``, for those of *specs* that have follow-ups."""
        super().__init__(scope, construct_id)
        self._name_prefix = f"{cluster}-joiner-"
        self.dead_letters = self._build_queue("dead-letters", retention_period=cdk.Duration.days(14))
        reason = "it is the dead-letter queue of the other queues"
        rule_id = "Serverless::Serverless-SQSRedrivePolicy"
        cdk.Validations.of(self.dead_letters).acknowledge(cdk.Acknowledgment(id=rule_id, reason=reason))
        self._dead_letter_config = sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=MAX_RECEIVE_COUNT)
        self.follow_ups = {
            spec.name: self._build_queue(
                spec.name,
                visibility_timeout=cdk.Duration.seconds(VISIBILITY_TIMEOUT_FACTOR * spec.timeout_seconds),
                dead_letter_queue=self._dead_letter_config,
            )
            for spec in specs
            if spec.is_followed_up
        }
        self.interruption = self._build_queue(
            "interruption",
            visibility_timeout=INTERRUPTION_VISIBILITY_TIMEOUT,
            retention_period=cdk.Duration.days(4),
            dead_letter_queue=self._dead_letter_config,
        )

    @property
    def prefix(self) -> str:
        """The URL of a follow-up queue without the name of the function at its end."""
        return f"https://sqs.{cdk.Aws.REGION}.{cdk.Aws.URL_SUFFIX}/{cdk.Aws.ACCOUNT_ID}/{self._name_prefix}"

    def connect_functions(self, functions: Functions) -> None:
        """Connect each queue to the function that reads it, and let the functions send their follow-ups."""
        for name, queue in self.follow_ups.items():
            _connect_reader(
                functions, name, queue, batch_size=FOLLOW_UP_BATCH_SIZE, max_concurrency=MAX_FOLLOW_UP_CONCURRENCY
            )
            for spec in functions.specs:
                if name in spec.follow_ups:
                    queue.grant(functions[spec.name], "sqs:SendMessage")
        _connect_reader(
            functions,
            "interrupt",
            self.interruption,
            batch_size=MAX_INTERRUPTIONS_PER_BATCH,
            max_batching_window=INTERRUPTION_BATCHING_WINDOW,
            max_concurrency=MAX_INTERRUPTION_CONCURRENCY,
        )

    def _build_queue(self, name: str, **options: object) -> sqs.Queue:
        title = name.title().replace("-", "")
        return sqs.Queue(
            self,
            title,
            queue_name=f"{self._name_prefix}{name}",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            **options,
        )


def _connect_reader(functions: Functions, name: str, queue: sqs.Queue, **options: object) -> None:
    """Let *queue* invoke the function *name*, with the permissions of the AWS managed policy for queues.

    `SqsEventSource` of the CDK grants more.
    """
    functions.get_alias(name).add_event_source_mapping(
        f"SqsEventSource:{cdk.Names.node_unique_id(queue.node)}",
        event_source_arn=queue.queue_arn,
        report_batch_item_failures=True,
        **options,
    )
    queue.grant(functions[name], *READ_ACTIONS)
