"""Instances of unregistered NodeClaims that EC2 does not list any more are looked up one by one."""

from datetime import timedelta
from typing import cast

from shared.errors import NotFound
from shared.model.ec2.instance import Instance
from shared.ports.aws import Ec2
from shared.take.ended_instances import MAX_LOOKUPS_PER_RUN, MIN_CLAIM_AGE, read_ended_instances
from tests.support.lifecycle_cases import NOW, make_claim, make_instance, make_true_conditions

LAUNCHED = make_true_conditions("Launched")


class FakeEc2:
    """Knows the instances *a* to *c* and records the lookups."""

    def __init__(self) -> None:
        """Start without lookups."""
        self.lookups: list[str] = []

    def describe_instance(self, instance_id: str) -> Instance:
        self.lookups.append(instance_id)
        if instance_id not in ("i-a", "i-b", "i-c"):
            raise NotFound(instance_id)
        return make_instance(instance_id.removeprefix("i-"), state="terminated")


def test_only_unregistered_claims_without_a_listed_instance_are_looked_up() -> None:
    ec2 = FakeEc2()
    new = NOW - MIN_CLAIM_AGE + timedelta(seconds=1)
    claims = [
        make_claim("a", conditions=LAUNCHED),
        make_claim("b"),
        make_claim("c", conditions=LAUNCHED),
        make_claim("d", conditions=LAUNCHED, created=new),
        make_claim("e", conditions=LAUNCHED, created=new, deleted=NOW),
        make_claim("f", conditions=LAUNCHED, launched=False),
    ]
    ended_instances = read_ended_instances(cast(Ec2, ec2), claims, [make_instance("c")], NOW)
    assert ec2.lookups == ["i-a", "i-e"]
    assert [instance.instance_id for instance in ended_instances] == ["i-a"]


def test_the_number_of_lookups_is_limited() -> None:
    ec2 = FakeEc2()
    claims = [make_claim(f"x{number}", conditions=LAUNCHED) for number in range(MAX_LOOKUPS_PER_RUN + 5)]
    assert read_ended_instances(cast(Ec2, ec2), claims, (), NOW) == ()
    assert len(ec2.lookups) == MAX_LOOKUPS_PER_RUN
