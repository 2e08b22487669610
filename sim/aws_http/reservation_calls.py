"""EC2's writes of on-demand capacity reservations: CreateCapacityReservation, CancelCapacityReservation."""

from shared.model.ec2.account import CapacityReservation, SelectorTerm
from sim.aws_http.describe_calls import encode_reservation
from sim.aws_http.instance_calls import parse_tags
from sim.aws_http.protocol import ApiDict, ApiError
from sim.cloud.cloud import Cloud


class ReservationApi:
    """Handlers of the calls; each takes the parameters of a call and returns its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Use *cloud* as the backend."""
        self._cloud = cloud

    def create_capacity_reservation(self, parameters: ApiDict) -> ApiDict:
        """CreateCapacityReservation: active at once.

        Raises:
            ApiError: the zone does not offer the instance type.
        """
        instance_type, zone = parameters["InstanceType"], parameters["AvailabilityZone"]
        if (instance_type, zone) not in self._cloud.offerings:
            text = f"The instance type '{instance_type}' is not supported in {zone}."
            raise ApiError("Unsupported", text)
        store = self._cloud.reservations
        reservation_id = store.add(
            CapacityReservation(
                reservation_id="",
                instance_type=instance_type,
                zone=zone,
                instance_match_criteria=parameters.get("InstanceMatchCriteria", "open"),
                available_count=parameters["InstanceCount"],
                total_count=parameters["InstanceCount"],
            ),
            parse_tags("capacity-reservation", parameters),
        )
        [reservation] = store.select((SelectorTerm(id=reservation_id),), self._cloud.clock.get_time())
        return {"CapacityReservation": encode_reservation(reservation, store.get_tags(reservation_id))}

    def cancel_capacity_reservation(self, parameters: ApiDict) -> ApiDict:
        """CancelCapacityReservation.

        Raises:
            ApiError: there is no such reservation.
        """
        reservation_id = parameters["CapacityReservationId"]
        if self._cloud.reservations.find(reservation_id) is None:
            text = f"The capacity reservation ID '{reservation_id}' does not exist."
            raise ApiError("InvalidCapacityReservationId.NotFound", text)
        self._cloud.reservations.cancel(reservation_id, self._cloud.clock.get_time())
        return {"Return": True}
