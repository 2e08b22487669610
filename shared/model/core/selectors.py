"""Label selectors."""

from collections.abc import Mapping
from typing import Final

import msgspec


class SelectorExpression(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One of matchExpressions; *operator* is In, NotIn, Exists or DoesNotExist, *values* are sorted."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def is_match(self, labels: Mapping[str, str]) -> bool:
        """Return whether *labels* satisfy the expression; an unknown operator is never satisfied."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return False


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """matchLabels (as `In` of one value) and matchExpressions, which must all match; empty selects everything."""

    expressions: tuple[SelectorExpression, ...] = ()

    def is_match(self, labels: Mapping[str, str]) -> bool:
        """Return whether the selector selects an object with *labels*."""
        return all(expression.is_match(labels) for expression in self.expressions)


EVERYTHING: Final = LabelSelector()


def build_label_selector(labels: Mapping[str, str], expressions: tuple[SelectorExpression, ...] = ()) -> LabelSelector:
    """Return one selector of matchLabels and matchExpressions, sorted."""
    label_expressions = (SelectorExpression(key=key, operator="In", values=(value,)) for key, value in labels.items())
    return LabelSelector(expressions=tuple(sorted((*label_expressions, *expressions))))
