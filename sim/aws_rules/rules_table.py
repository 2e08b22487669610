"""The rows of `rules.toml`."""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

CheckName = Literal[
    "filters",
    "exclusive",
    "absent",
    "range",
    "count",
    "count_each",
    "characters",
    "bytes",
    "decoded_bytes",
    "pattern",
    "unique",
    "item_bytes",
    "total_item_bytes",
]


class UnlistedFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters that the API reference does not list, and the page that shows them in use."""

    values: tuple[str, ...]
    page: str


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row: which requests AWS rejects, and with which error."""

    id: str
    calls: tuple[str, ...]
    check: CheckName
    code: str
    message: str
    page: str
    path: str = ""
    paths: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    also: UnlistedFilters | None = None
    minimum: int = 0
    maximum: int = 0
    pattern: str = ""
    when: Mapping[str, str] = {}

    @property
    def all_paths(self) -> tuple[str, ...]:
        """The paths of the checked values."""
        return self.paths or (self.path,)

    def build_message(self, value: object) -> str:
        """Return AWS's message about *value*."""
        return self.message.format(value=value, minimum=self.minimum, maximum=self.maximum)


class _RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: tuple[Rule, ...]


@cache
def load_rules() -> tuple[Rule, ...]:
    """Return all rules, in the order of the file."""
    document = tomllib.loads(files("sim.aws_rules").joinpath("rules.toml").read_text(encoding="utf-8"))
    return msgspec.convert(document, _RuleFile).rule


def list_rules(call: str) -> tuple[Rule, ...]:
    """Return the rules of *call*, as ``ec2:DescribeInstances``."""
    return tuple(rule for rule in load_rules() if any(fnmatchcase(call, pattern) for pattern in rule.calls))
