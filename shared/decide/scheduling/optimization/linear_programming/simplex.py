"""The pivot of the primal simplex method, on the inverse of the basis."""

from collections.abc import Sequence
from typing import Final, TypeAlias

Amounts: TypeAlias = tuple[float, ...]
TOLERANCE: Final = 1e-9


def pivot_inverse(inverse: list[list[float]], levels: list[float], column: Sequence[float], leaving: int) -> None:
    """Update *inverse* and *levels* when the variable with *column* replaces that of row *leaving* in the basis."""
    scale = 1 / column[leaving]
    pivot_row = inverse[leaving] = [scale * value for value in inverse[leaving]]
    levels[leaving] *= scale
    for row_index, factor in enumerate(column):
        if row_index != leaving and abs(factor) > TOLERANCE:
            inverse[row_index] = [
                value - factor * pivot_value for value, pivot_value in zip(inverse[row_index], pivot_row, strict=True)
            ]
            levels[row_index] = max(0.0, levels[row_index] - factor * levels[leaving])
