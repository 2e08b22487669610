"""Settings of limits, budgets and commitments in USD."""

from typing import Annotated, Literal

import msgspec

from shared import settings_text
from shared.model.decisions.month_costs import parse_budget_steps
from shared.model.karpenter.money_limit import LimitPriceKind
from shared.settings_by_topic.planning import PlanningSettings
from shared.settings_text import ExternalId, RoleArn, TextForm


class MoneySettings(PlanningSettings, frozen=True, kw_only=True):
    """Settings of limits, budgets and commitments in USD."""

    limit_usd_per_hour: Annotated[float, msgspec.Meta(ge=0, lt=1e6), TextForm(allowed="USD, like 12.50")] = 0
    """Limit of the total price of the nodes of all NodePools in USD per hour, including volumes. Joiner launches no
    node that would exceed it, even if functions launch nodes at the same time. The annotation
    `joiner.dev/limit-usd-per-hour` limits a NodePool. 0: unlimited."""
    group: settings_text.GroupName = ""
    """Name of a group of clusters with one limit in USD per hour. All clusters of the group have the same `group` and
    `group-table`. Empty: no group."""
    group_limit_usd_per_hour: Annotated[float, msgspec.Meta(ge=0, lt=1e6), TextForm(allowed="USD, like 120")] = 0
    """Limit of the total price of the nodes of all clusters in `group`, in USD per hour, including volumes. If clusters
    have different limits, the lowest applies."""
    group_table: settings_text.TableArn = ""
    """ARN of the DynamoDB table that the clusters of `group` share: docs/guide/groups.md. The function `provision` gets
    the permission to read and write the item of the group, `disrupt` and `interrupt` to read it."""
    money_limit_prices: LimitPriceKind = "marginal"
    """Prices that count against limits in USD per hour. `marginal`: the current price of the offering, such as the spot
    price. `list`: the on-demand price of the instance type, for every capacity type."""
    priority_under_limits: Literal["off", "on"] = "off"
    """`on`: if limits or capacity do not allow nodes for all pending pods, pods of higher priority get nodes first, and
    the events of refused pods name the pods of higher priority. `off`: the largest pods first, as in Karpenter."""
    monthly_budget_usd: Annotated[float, msgspec.Meta(ge=0, lt=1e9), TextForm(allowed="USD, like 5000")] = 0
    """Budget of a calendar month (UTC) for the cluster's instances, as `joiner cost` counts them. The more is used, the
    fewer pending pods get new nodes: see `monthly-budget-steps`. Nodes are not terminated. 0: no budget."""
    monthly_budget_steps: Annotated[str, TextForm(allowed="three percentages", parse=parse_budget_steps)] = "80,90,100"
    """Percentages of `monthly-budget-usd` from which new nodes are restricted. First: NodePools that allow spot launch
    no on-demand nodes. Second: only pods of high priority get new nodes. Third: no pending pod gets a new node."""
    monthly_budget_priority: int = 1
    """The lowest priority of a pod that counts as high priority in the second step of the monthly budget."""
    commitments: Literal["off", "bucket", "account"] = "off"
    """Source of the Savings Plans and Reserved Instances that plans use: docs/guide/money.md. `account`: `catalog` gets
    permissions to read those of the account; not possible with `network: isolated`. `bucket`: `catalog` reads the file
    `market/commitments.json` that you upload. With both, `catalog` also reads the other instances of the account, which
    use commitments too. `off`: plans use prices without commitments."""
    commitments_role: RoleArn = ""
    """ARN of an IAM role that `catalog` assumes to also read Savings Plans and Reserved Instances of a payer account:
    docs/guide/money.md#payer-account. Requires `commitments: account`."""
    commitments_external_id: ExternalId = ""
    """The external ID that the trust policy of `commitments-role` requires, if it requires an external ID."""
