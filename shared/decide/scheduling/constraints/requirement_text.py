"""Requirements as text, for the reasons of unschedulable pods."""

from collections.abc import Iterable

from shared.model.core.labels import CAPACITY_TYPE, ZONE
from shared.model.core.requirements import Requirement, Requirements


def format_location(requirements: Requirements) -> str:
    """Return the zones and capacity types that *requirements* allow, with a leading space; "" if they allow all."""
    location_requirements = [
        requirements[key] for key in (ZONE, CAPACITY_TYPE) if key in requirements and not requirements[key].complement
    ]
    words = [", ".join(sorted(item.values)) for item in location_requirements if item.values]
    return "".join(f" {word} {values}" for word, values in zip(("in", "as"), words, strict=False))


def format_requirement(item: Requirement) -> str:
    """Return *item* as in a manifest."""
    bounds: Iterable[tuple[str, int | None]] = ((">=", item.gte), ("<=", item.lte))
    numbers = " and ".join(f"{sign} {bound}" for sign, bound in bounds if bound is not None)
    if numbers:
        return f"{item.key} {numbers}"
    values = f" [{', '.join(sorted(item.values))}]" if item.values else ""
    return f"{item.key} {item.operator}{values}"
