"""Capacity reservations: the queries that Joiner derives from `capacityReservationSelectorTerms`."""

from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.ec2.filters import build_reservation_queries
from shared.model.ec2.account import SelectorTerm
from tests.e2e_aws.environment import RUN_TAG, Environment
from tests.e2e_aws.results import Observation, compare
from tests.e2e_aws.steps.fleet_requests import SMALL_ARM64_TYPES, build_name, build_tags, find_network

VISIBILITY_TIMEOUT: Final = timedelta(minutes=1)


def check_reservation_filters(environment: Environment) -> Observation:
    """Create a reservation for one instance; select it by id, tag, existence of a tag, owner and match criteria."""
    ec2, name = (
        environment.get_client("ec2"),
        environment.ledger.record("capacity-reservation", build_name(environment, "reservation")),
    )
    reservation = ec2.create_capacity_reservation(
        InstanceType=SMALL_ARM64_TYPES[0],
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=find_network(environment).subnets[0][0],
        InstanceCount=1,
        InstanceMatchCriteria="targeted",
        TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": build_tags(environment, name)}],
    )["CapacityReservation"]
    reservation_id, run_tags = reservation["CapacityReservationId"], ((RUN_TAG, environment.run_id),)
    terms = {
        "id": SelectorTerm(id=reservation_id),
        "tag": SelectorTerm(tags=run_tags),
        "tag key": SelectorTerm(tags=((RUN_TAG, "*"),)),
        "owner": SelectorTerm(tags=run_tags, owner=reservation["OwnerId"]),
        "match criteria": SelectorTerm(tags=run_tags, instance_match_criteria="targeted"),
    }
    environment.wait_until(lambda: _query(ec2, terms["id"], reservation_id) == "selected", VISIBILITY_TIMEOUT)
    answers = {kind: _query(ec2, term, reservation_id) for kind, term in terms.items()}
    answers["other match criteria"] = _query(
        ec2, SelectorTerm(tags=run_tags, instance_match_criteria="open"), reservation_id
    )
    expected = dict.fromkeys(terms, "selected") | {"other match criteria": "not selected"}
    observed = ", ".join(f"{kind}: {answer}" for kind, answer in answers.items())
    return compare(observed, is_expected=answers == expected, evidence=answers)


def _query(ec2: Any, term: SelectorTerm, reservation_id: str) -> str:
    """Return whether Joiner's query for *term* selects the reservation, or the code of the error."""
    found_ids: list[str] = []
    for query in build_reservation_queries((term,)):
        try:
            response = ec2.describe_capacity_reservations(**query)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        found_ids += [item["CapacityReservationId"] for item in response["CapacityReservations"]]
    return "selected" if reservation_id in found_ids else "not selected"
