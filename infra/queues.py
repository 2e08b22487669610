"""What wakes a function besides the schedule: a queue of follow-ups for whom there may be some, and what EC2 announces.

`Mailbox` finds a follow-up queue by its URL, a prefix and the function's name, so that no function refers to another's
queue and a new function needs no new setting. A message that fails for good waits in one place for a person.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import Functions, Spec

BATCH: Final = 10
MAX_CONCURRENCY: Final = 2
"""The least that Lambda allows: one works, for there is a lease, and who comes second says so and ends."""
VISIBILITY_TIMEOUTS: Final = 6
"""Visibility time-out in time-outs of the function; what AWS recommends, for Lambda retries while it is throttled."""
INTERRUPTION_VISIBILITY: Final = cdk.Duration.seconds(30)
"""Longer than time-out and window together, and shorter than recommended: a spot instance is gone two minutes after its
warning, a second attempt comes sooner."""
STORM: Final = 100
"""Notices that one invocation takes: as many Nodes are tainted in about a second, and one plan is made for all."""
WINDOW: Final = cdk.Duration.seconds(1)
"""How long notices are gathered: what a batch above ten needs at least, of two minutes."""
STORM_CONCURRENCY: Final = 5
"""Invocations for notices at once; what comes while all are at work makes their next batches larger."""
ATTEMPTS: Final = 5


class Queues(Construct):
    """Follow-ups, interruptions, dead letters; all encrypted, all TLS only."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, specs: tuple[Spec, ...]) -> None:
        """Make them, named ``<cluster>-joiner-<function>``, for those of *specs* that are followed up."""
        super().__init__(scope, construct_id)
        self._names = f"{cluster}-joiner-"
        self.dead = self._queue("dead-letters", retention_period=cdk.Duration.days(14))
        last = "it is where the letters of the others end"
        named = "Serverless::Serverless-SQSRedrivePolicy"
        cdk.Validations.of(self.dead).acknowledge(cdk.Acknowledgment(id=named, reason=last))
        self._letters = sqs.DeadLetterQueue(queue=self.dead, max_receive_count=ATTEMPTS)
        self.follow_ups = {
            spec.name: self._queue(
                spec.name,
                visibility_timeout=cdk.Duration.seconds(VISIBILITY_TIMEOUTS * spec.timeout_seconds),
                dead_letter_queue=self._letters,
            )
            for spec in specs
            if spec.is_followed_up
        }
        self.interruption = self._queue(
            "interruption",
            visibility_timeout=INTERRUPTION_VISIBILITY,
            retention_period=cdk.Duration.days(4),
            dead_letter_queue=self._letters,
        )

    @property
    def prefix(self) -> str:
        """The URL of a follow-up queue without the function's name at its end."""
        return f"https://sqs.{cdk.Aws.REGION}.{cdk.Aws.URL_SUFFIX}/{cdk.Aws.ACCOUNT_ID}/{self._names}"

    def wake(self, functions: Functions) -> None:
        """Connect each queue with the function that reads it, and let every function send follow-ups to all."""
        for name, queue in self.follow_ups.items():
            functions.alias(name).add_event_source(
                sources.SqsEventSource(
                    queue, batch_size=BATCH, report_batch_item_failures=True, max_concurrency=MAX_CONCURRENCY
                )
            )
            for spec in functions.specs:
                queue.grant_send_messages(functions[spec.name])
        functions.alias("interrupt").add_event_source(
            sources.SqsEventSource(
                self.interruption,
                batch_size=STORM,
                max_batching_window=WINDOW,
                report_batch_item_failures=True,
                max_concurrency=STORM_CONCURRENCY,
            )
        )

    def _queue(self, name: str, **options: object) -> sqs.Queue:
        title = name.title().replace("-", "")
        return sqs.Queue(
            self,
            title,
            queue_name=f"{self._names}{name}",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            **options,
        )
