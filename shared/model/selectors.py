"""Label selectors: which objects are meant."""

from collections.abc import Mapping
from typing import Final

import msgspec


class Expression(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One of matchExpressions; *operator* is In, NotIn, Exists or DoesNotExist, *values* are sorted."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether *labels* satisfy it; an unknown operator is satisfied by nothing."""
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
    """matchLabels (as `In` of one value) and matchExpressions, all of which must hold; empty selects everything."""

    expressions: tuple[Expression, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with *labels* is meant."""
        return all(expression.matches(labels) for expression in self.expressions)


EVERYTHING: Final = LabelSelector()


def selector(labels: Mapping[str, str], expressions: tuple[Expression, ...] = ()) -> LabelSelector:
    """Join matchLabels and matchExpressions into one value, sorted."""
    equal = (Expression(key=key, operator="In", values=(value,)) for key, value in labels.items())
    return LabelSelector(expressions=tuple(sorted((*equal, *expressions))))
