"""Lower bound of the cost: a linear program over whole nodes and fractional pods that no plan can beat.

The variables are the number of nodes of each purchase option, and the number of pods of each group on each bin. A bin
has capacity for the pods on it; a node holds at most the whole number of pods of one group that fit, and at most as
many pods of a selection as its host limit allows. Pods may be fractional, preferences do not count, and neither do
constraints between pods, except those about one node and even spread: real plans therefore cost more.

The program is solved by column generation: of all combinations of groups and bins, only the columns with negative
reduced cost are added. The result is what the dual values prove, whether more columns are missing or not: prices of
capacity such that no node is worth more than it costs, and what the pods cost at these prices. If the program is small,
the numbers of nodes are integers, which gives a better bound for cheap clusters.
"""

from math import floor, inf
from typing import Final

import highspy
import msgspec
import numpy as np

from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.state.cluster_state import ClusterState
from sim.lower_bound.bound_problem import BoundProblem, build_bound_problem
from sim.lower_bound.launch_options import BoolArray, FloatArray
from sim.lower_bound.pod_groups import HostLimit

MAX_INTEGER_COLUMNS: Final = 15_000
"""Up to this number of columns (groups on bins), the numbers of nodes are integers."""
MAX_SEARCH_NODES: Final = 2_000
"""Limit of the branch-and-bound search for integer solutions; it ends with a bound."""
COLUMNS_PER_GROUP: Final = 3
"""Number of columns that are added per group and round."""
MAX_ROUNDS: Final = 40
BOUND_QUALITY_RATIO: Final = 0.999
"""Column generation ends when the proved bound reaches this part of the objective value of the current columns."""
SMOOTHING_RATIO: Final = 0.6
UNPLACED_POD_COST: Final = 1e4
"""Cost of a pod without a bin; no such pod is left in the solution."""
PRIMAL_SIMPLEX_CODE: Final = 4
INTEGER_COLUMN_TYPE: Final = 1
MAX_PODS_TO_ROUND: Final = 6
"""If fewer pods than this fit on a node, the fraction of a pod that is cut off is taken into account."""
_MIN_FRACTION: Final = 0.05
_TOLERANCE: Final = 1e-7
_PRECISION_RATIO: Final = 1 - 1e-6
"""Precision of the solver's results."""


def compute_lower_bound(cluster: ClusterSnapshot, placement: Placement, options: SchedulingOptions) -> float:
    """Return a lower bound of the cost per hour of the pods that *placement* places, in USD.

    Raises:
        ValueError: the program has no solution: the placement breaks a constraint.
    """
    if not placement.new_nodes and not placement.existing:
        return 0.0
    return _LinearProgram(build_bound_problem(ClusterState(cluster), placement, options)).solve() * _PRECISION_RATIO


class _Duals(msgspec.Struct, frozen=True, kw_only=True):
    """Dual values of the rows of the program, and the reduced cost of a node of each purchase option."""

    row_values: FloatArray
    reduced_costs: FloatArray

    def smooth(self, best_duals: "_Duals") -> "_Duals":
        """Return a combination with the best duals so far, which stabilizes column generation: duals oscillate."""
        best_row_values = np.concatenate(
            [best_duals.row_values, np.zeros(len(self.row_values) - len(best_duals.row_values))]
        )
        return _Duals(
            row_values=SMOOTHING_RATIO * best_row_values + (1 - SMOOTHING_RATIO) * self.row_values,
            reduced_costs=SMOOTHING_RATIO * best_duals.reduced_costs + (1 - SMOOTHING_RATIO) * self.reduced_costs,
        )


class _LinearProgram:
    """The linear program. Its columns are nodes of each purchase option, then groups on bins, as they are added."""

    def __init__(self, problem: BoundProblem) -> None:
        """Create the columns of the purchase options and all constraints."""
        self._problem = problem
        self._option_count = len(problem.prices)
        self._model = highspy.Highs()  # type: ignore[no-untyped-call]  # it has no annotations
        self._model.silent()
        self._model.setOptionValue("threads", 1)
        for price_usd_per_hour, max_count in zip(problem.prices, problem.max_counts, strict=True):
            self._model.addCol(float(price_usd_per_hour), 0.0, float(max_count), 0, [], [])
        self._demand_rows = [self._add_row(float(count), float(count)) for count in problem.pod_counts]
        self._capacity_rows = [
            [self._add_per_node_row(bin_index, float(capacity)) for capacity in capacities]
            for bin_index, capacities in enumerate(problem.capacities)
        ]
        self._min_count_rows = [
            self._add_row(float(constraint.count), inf) for constraint in problem.min_count_constraints
        ]
        self._slack_columns = [self._add_slack(line) for line in (*self._demand_rows, *self._min_count_rows)]
        for limit_constraint in problem.limit_constraints:
            row = self._add_row(-inf, limit_constraint.max_amount)
            for option_index in np.flatnonzero(limit_constraint.amounts):
                self._model.changeCoeff(row, int(option_index), float(limit_constraint.amounts[option_index]))
        self._host_limit_rows: dict[tuple[HostLimit, int], int] = {}
        self._whole_pod_rows: dict[tuple[int, int], int] = {}
        """By group and bin: the row that limits the group to whole pods."""
        host_limits = dict.fromkeys(host_limit for host_limit in problem.host_limits if host_limit is not None)
        self._groups_by_host_limit = {
            host_limit: np.array([other_host_limit == host_limit for other_host_limit in problem.host_limits])
            for host_limit in host_limits
        }
        self._has_column = np.zeros_like(problem.is_allowed)

    def solve(self) -> float:
        """Return the lower bound of the price.

        Raises:
            ValueError: there is no solution.
        """
        is_small = int(self._problem.is_allowed.sum()) <= MAX_INTEGER_COLUMNS
        self._add_columns(self._problem.is_allowed if is_small else self._choose_initial_columns())
        best_bound, best_duals = 0.0, None
        for _ in range(MAX_ROUNDS):
            objective, duals = self._run(), self._read_duals()
            missing_columns = np.zeros_like(self._has_column)
            for candidate_duals in [duals] if best_duals is None else [duals.smooth(best_duals), duals]:
                pod_costs = self._compute_pod_costs(candidate_duals)
                proved_bound = self._compute_proved_bound(candidate_duals, pod_costs)
                if proved_bound > best_bound:
                    best_bound, best_duals = proved_bound, candidate_duals
                missing_columns = (
                    missing_columns if missing_columns.any() else self._find_missing_columns(candidate_duals, pod_costs)
                )
            if best_bound >= BOUND_QUALITY_RATIO * objective or not missing_columns.any():
                break
            self._add_columns(missing_columns)
        if np.array(self._model.getSolution().col_value)[self._slack_columns].max(initial=0.0) > _TOLERANCE:
            raise ValueError("not all of these pods can be placed together")
        return max(best_bound, self._solve_integer()) if is_small else best_bound

    def _add_row(self, lower: float, upper: float) -> int:
        self._model.addRow(lower, upper, 0, [], [])
        return int(self._model.getNumRow()) - 1

    def _add_slack(self, row: int) -> int:
        """Add a column that satisfies the row *row* without a node, at a high cost."""
        self._model.addCol(UNPLACED_POD_COST, 0.0, inf, 1, [row], [1.0])
        return int(self._model.getNumCol()) - 1

    def _add_per_node_row(self, bin_index: int, amount: float) -> int:
        """Add a row with at most *amount* for each node of a bin, of which an existing node is one."""
        if bin_index >= self._option_count:
            return self._add_row(-inf, amount)
        row = self._add_row(-inf, 0.0)
        self._model.changeCoeff(row, bin_index, -amount)
        return row

    def _choose_initial_columns(self) -> BoolArray:
        """Return the bins where each group costs least, by the largest fraction of a node that one pod takes."""
        problem = self._problem
        node_fractions = (problem.requests[:, None, :] / np.maximum(problem.capacities, _TOLERANCE)[None, :, :]).max(
            axis=2
        )
        node_fractions = np.maximum(
            node_fractions,
            np.array([0.0 if host_limit is None else 1 / host_limit[0] for host_limit in problem.host_limits])[:, None],
        )
        prices = np.concatenate([problem.prices, np.zeros(len(problem.capacities) - self._option_count)])
        return _select_cheapest(np.where(problem.is_allowed, node_fractions * prices, inf))

    def _compute_pod_costs(self, duals: "_Duals") -> FloatArray:
        """Return the price of a pod, by group and bin.

        At prices of capacity at which no node earns more than it costs.
        """
        problem, row_values = self._problem, duals.row_values
        capacity_prices = np.maximum(-row_values[np.array(self._capacity_rows)], 0.0)
        usual_prices = capacity_prices[: self._option_count].sum(axis=0) + _TOLERANCE
        unused_costs = np.maximum(duals.reduced_costs, 0.0)
        capacity_prices[: self._option_count] += (
            unused_costs / (problem.capacities[: self._option_count] @ usual_prices)
        )[:, None] * usual_prices
        pod_costs = problem.requests @ capacity_prices.T
        for row, constraint in zip(self._min_count_rows, problem.min_count_constraints, strict=True):
            pod_costs[np.ix_(np.array(constraint.group_indexes), np.flatnonzero(constraint.is_in_domain))] -= (
                row_values[row]
            )
        for (host_limit, bin_index), row in self._host_limit_rows.items():
            pod_costs[self._groups_by_host_limit[host_limit], bin_index] -= row_values[row]
        for (group_index, bin_index), row in self._whole_pod_rows.items():
            pod_costs[group_index, bin_index] -= row_values[row]
        return np.where(problem.is_allowed, pod_costs, inf)

    def _compute_proved_bound(self, duals: "_Duals", pod_costs: FloatArray) -> float:
        """Return what the pods pay on their cheapest bins, minus what does not pay for bought nodes."""
        problem, model, row_values = self._problem, self._model.getLp(), duals.row_values.copy()
        row_values[self._demand_rows] = 0.0
        row_bounds = np.where(row_values > 0, np.array(model.row_lower_), np.array(model.row_upper_))
        negative_costs = np.where(np.isfinite(problem.max_counts), np.minimum(duals.reduced_costs, 0.0), 0.0)
        is_negative = negative_costs < 0
        constant = (
            row_values[row_values != 0] @ row_bounds[row_values != 0]
            + negative_costs[is_negative] @ problem.max_counts[is_negative]
        )
        return float(pod_costs.min(axis=1) @ problem.pod_counts + constant)

    def _find_missing_columns(self, duals: "_Duals", pod_costs: FloatArray) -> BoolArray:
        """Return the columns with negative reduced cost, the best of each group."""
        reduced_costs = pod_costs - duals.row_values[self._demand_rows][:, None]
        return _select_cheapest(np.where(~self._has_column & (reduced_costs < -_TOLERANCE), reduced_costs, inf))

    def _read_duals(self) -> "_Duals":
        """Return the dual values, without those of the wrong sign, which are rounding errors."""
        solution, model = self._model.getSolution(), self._model.getLp()
        row_values = np.array(solution.row_dual)
        is_wrong = np.where(row_values > 0, np.isinf(np.array(model.row_lower_)), np.isinf(np.array(model.row_upper_)))
        return _Duals(
            row_values=np.where(is_wrong, 0.0, row_values),
            reduced_costs=np.array(solution.col_dual[: self._option_count]),
        )

    def _add_columns(self, columns: BoolArray) -> None:
        for group_index, bin_index in np.argwhere(columns):
            self._add_column(int(group_index), int(bin_index))
        self._has_column |= columns

    def _add_column(self, group_index: int, bin_index: int) -> None:
        problem = self._problem
        entries = {self._demand_rows[group_index]: 1.0}
        entries |= {
            self._capacity_rows[bin_index][axis]: float(amount)
            for axis, amount in enumerate(problem.requests[group_index])
            if amount
        }
        entries |= {
            row: 1.0
            for row, constraint in zip(self._min_count_rows, problem.min_count_constraints, strict=True)
            if group_index in constraint.group_indexes and constraint.is_in_domain[bin_index]
        }
        host_limit = problem.host_limits[group_index]
        if host_limit is not None:
            entries[self._get_host_limit_row(host_limit, bin_index)] = 1.0
        fitting_pods = _count_fitting(problem.capacities[bin_index], problem.requests[group_index])
        if bin_index < self._option_count and fitting_pods < MAX_PODS_TO_ROUND and fitting_pods % 1 > _MIN_FRACTION:
            self._whole_pod_rows[group_index, bin_index] = self._add_per_node_row(bin_index, floor(fitting_pods))
            entries[self._whole_pod_rows[group_index, bin_index]] = 1.0
        self._model.addCol(0.0, 0.0, inf, len(entries), list(entries), list(entries.values()))

    def _get_host_limit_row(self, host_limit: HostLimit, bin_index: int) -> int:
        if (host_limit, bin_index) not in self._host_limit_rows:
            self._host_limit_rows[host_limit, bin_index] = self._add_per_node_row(bin_index, float(host_limit[0]))
        return self._host_limit_rows[host_limit, bin_index]

    def _run(self) -> float:
        self._model.run()
        status = self._model.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise ValueError(f"no least price: {self._model.modelStatusToString(status)}")
        self._model.setOptionValue(
            "simplex_strategy", PRIMAL_SIMPLEX_CODE
        )  # columns are added, rows are not: the simplex continues from the current basis
        return float(self._model.getInfo().objective_function_value)

    def _solve_integer(self) -> float:
        """Return the lower bound if the numbers of nodes are integers."""
        rows = np.arange(self._option_count, dtype=np.int32)
        self._model.changeColsIntegrality(
            self._option_count, rows, np.full(self._option_count, INTEGER_COLUMN_TYPE, dtype=np.uint8)
        )
        self._model.setOptionValue("mip_max_nodes", MAX_SEARCH_NODES)
        self._model.setOptionValue("mip_rel_gap", 1e-3)
        self._model.run()
        return float(self._model.getInfo().mip_dual_bound)


def _select_cheapest(costs: FloatArray) -> BoolArray:
    """Return, for each row, the few finite costs that are lowest."""
    cheapest_bins = np.argsort(costs, axis=1, kind="stable")[:, :COLUMNS_PER_GROUP]
    is_selected = np.zeros(costs.shape, dtype=np.bool_)
    np.put_along_axis(is_selected, cheapest_bins, values=True, axis=1)
    return is_selected & np.isfinite(costs)


def _count_fitting(capacity: FloatArray, requests: FloatArray) -> float:
    """Return how many pods fit, including the fraction of a pod that is left over."""
    is_requested = requests > 0
    return float((capacity[is_requested] / requests[is_requested]).min(initial=inf))
