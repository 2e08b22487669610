"""The check `prices` of doctor reports a region whose prices must come from a file."""

import pytest

from cli.doctor.checks.price_source import check_price_source
from cli.facts.model import StackFacts
from shared.settings import Settings
from tests.support.cli.doctor_facts import make_facts, make_function_facts, make_stack_facts

GOVCLOUD = "us-gov-west-1"


def make_priced_stack(price_list: str) -> StackFacts:
    settings = Settings(cluster_name="prod", region=GOVCLOUD, price_list=price_list)
    return make_stack_facts(functions=(make_function_facts("catalog", settings=settings),))


@pytest.mark.parametrize(
    ("region", "stack", "level", "message"),
    [
        (GOVCLOUD, make_priced_stack(""), "fail", "no price list is deployed: nothing is launched on demand"),
        (GOVCLOUD, make_priced_stack("prices.json"), "ok", "a price list is deployed"),
        (GOVCLOUD, None, "later", "the deployment needs a price list"),
        ("cn-north-1", make_priced_stack(""), "fail", "cn-north-1 is in partition aws-cn"),
    ],
)
def test_a_region_outside_the_partition_aws_needs_a_price_list(
    region: str, stack: StackFacts | None, level: str, message: str
) -> None:
    [result] = check_price_source(make_facts(of_account={"region": region, "stack": stack}))
    assert (result.check, result.level) == ("prices", level)
    assert message in result.message
    assert (level == "ok") or f"joiner catalog prices --region {region} -o FILE" in result.fix


def test_the_commercial_partition_needs_no_price_list() -> None:
    assert list(check_price_source(make_facts())) == []
