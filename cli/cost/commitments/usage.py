"""The commitments of a document, for the nodes in the cost ledger."""

from shared.model.ec2.commitments import Commitments
from shared.report.costs.cost_ledger import CostLedger
from shared.store.commitments import CommitmentsDocument, build_commitments, find_region


def convert_document(document: CommitmentsDocument, ledger: CostLedger) -> Commitments:
    """Return the commitments of *document* for the regions and the instance types of *ledger*."""
    regions = {region for lifetime in ledger.lives if (region := find_region(lifetime.zone))}
    prices = {lifetime.instance_type: lifetime.on_demand_usd_per_hour for lifetime in ledger.lives}
    return build_commitments(document, regions, prices)
