"""What AWS's documentation leaves open: each field selects one of the possible answers.

By default, AWS answers as a client hopes. The fault simulation draws the answers from its seed.
"""

from datetime import timedelta
from typing import Final

import msgspec

from sim.cloud import seeded_random

HIDDEN_RATIO: Final = 0.5
"""How often a Describe call does not show an instance whose visibility is inconsistent."""
TEMPLATE_DELAY: Final = timedelta(seconds=5)
"""How long CreateFleet may not find a launch template after its creation."""


class OpenAnswers(msgspec.Struct, kw_only=True):
    """The selected answers of one account."""

    seed: int = 0
    inconsistent_reads: bool = False
    """For a while after an instance is first shown, some Describe calls do not show it.

    https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
    """
    late_templates: bool = False
    """CreateFleet does not find a launch template that was created a moment ago (the same page)."""

    unseen_terminations: bool = False
    """TerminateInstances does not find an instance that Describe does not show yet (the same page)."""
    denies_unseen_instances: bool = False
    """IAM checks a call on an instance that EC2 does not show without the instance's tags: UnauthorizedOperation.

    Otherwise the answer is InvalidInstanceID.NotFound. The Service Authorization Reference leaves the order of both
    checks open: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
    """
    describe_count: int = 0
    """The number of answers about instances whose visibility is inconsistent."""

    def is_visible(self, instance_id: str, age: timedelta, lag: timedelta) -> bool:
        """Return whether a Describe call shows an instance of this *age*, *lag* after whose launch it is first shown.

        If reads are inconsistent, some calls do not show it for the same time again.
        """
        if age < lag:
            return False
        if not self.inconsistent_reads or age >= 2 * lag:
            return True
        self.describe_count += 1
        return seeded_random.draw_fraction(self.seed, "hidden", instance_id, self.describe_count) >= HIDDEN_RATIO

    def is_late(self, template_age: timedelta) -> bool:
        """Return whether CreateFleet does not find a launch template of this age yet."""
        return self.late_templates and template_age < TEMPLATE_DELAY


def draw_open_answers(seed: int) -> OpenAnswers:
    """Return the answers that *seed* selects: each of the less convenient ones in half of the seeds."""

    def draw(answer: str) -> bool:
        return seeded_random.draw_fraction(seed, "open answer", answer) < HIDDEN_RATIO

    return OpenAnswers(
        seed=seed,
        inconsistent_reads=draw("inconsistent reads"),
        late_templates=draw("late templates"),
        unseen_terminations=draw("unseen terminations"),
        denies_unseen_instances=draw("denied unseen instances"),
    )
