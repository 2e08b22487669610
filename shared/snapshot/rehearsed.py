"""What EC2 said it would refuse of a launch, as `shared.actions.rehearsals` wrote it down."""

from shared.launch.probes import REHEARSAL, rehearsal_in
from shared.model.ec2 import Refusal
from shared.model.nodeclasses import EC2NodeClass
from shared.ports import World


def remembered(node_class: EC2NodeClass, world: World) -> tuple[Refusal, ...]:
    """Answer what EC2 said it would refuse of launching for *node_class* as it is now; () if it was not asked.

    A refusal holds until EC2 says otherwise, however old it is.

    Raises:
        Fault: the table did not answer.
    """
    row = world.table.read(REHEARSAL, node_class.name)
    known = rehearsal_in(row.body, node_class) if row is not None else None
    return known.refusals if known is not None else ()
