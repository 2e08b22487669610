"""The modules that `make mutants` changes, and the tests that must notice.

The quick gate runs all of `tests/unit` and `tests/property`. Here each module has only the tests that can notice a
change in it, the most specific first: its own tests, then those of its package, then the laws. The HTTP client's tests
are contract tests, because a simulator of the API server would not notice what it sends.
"""

from typing import Final

_DISRUPTION: Final = ("tests/unit/shared/decide/disruption", "tests/property/disruption")
_LAUNCH: Final = ("tests/unit/shared/decide/launch", "tests/unit/shared/apply", "tests/property/launch")
_LIFECYCLE: Final = ("tests/unit/shared/decide/lifecycle", "tests/property/lifecycle")
_SCHEDULING: Final = ("tests/unit/shared/decide/scheduling", "tests/property/scheduling")

TESTS_BY_MODULE: Final = {
    "shared/decide/disruption/budgets/budget.py": _DISRUPTION,
    "shared/decide/disruption/drift/drift.py": _DISRUPTION,
    "shared/decide/disruption/methods/replacement.py": _DISRUPTION,
    "shared/decide/disruption/methods/single_and_multi_node_consolidation.py": _DISRUPTION,
    "shared/decide/launch/fleets/fleet_result.py": _LAUNCH,
    "shared/decide/launch/fleets/launch_planning.py": _LAUNCH,
    "shared/decide/lifecycle/termination/termination.py": _LIFECYCLE,
    "shared/decide/scheduling/nodes/existing_node.py": _SCHEDULING,
    "shared/decide/scheduling/packing/feasibility.py": _SCHEDULING,
    "shared/decide/scheduling/packing/first_fit.py": _SCHEDULING,
    "shared/decide/scheduling/topology/topology.py": _SCHEDULING,
    "shared/kubernetes/client.py": ("tests/contract/kubernetes/test_client.py", "tests/contract/kubernetes"),
    "shared/model/core/requirements.py": (
        "tests/property/model/test_requirements.py",
        "tests/unit/shared/decide/scheduling/constraints",
        "tests/unit/shared/model",
    ),
    "shared/model/core/resources.py": ("tests/property/model/test_resources.py", "tests/unit/shared/model"),
}
"""Paths of the files and folders with the tests of each module."""


def find_own_tests(module: str) -> list[str]:
    """Return the tests that run first: the doctests of *module*, and the folder that mirrors the folder of *module*."""
    mirror = f"tests/unit/{module.rpartition('/')[0]}"
    has_mirror = any(mirror.startswith(f"{test}/") for test in TESTS_BY_MODULE[module])
    return [module, mirror] if has_mirror else [module]
