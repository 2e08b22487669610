"""The policies of the role in a payer account, as docs/guide/money.md shows them."""

import json
import re
from pathlib import Path
from typing import Any, Final

_PAGE: Final = Path(__file__).parents[3] / "docs/guide/money.md"
_JSON_BLOCK: Final = re.compile(r"```json\n(.*?)```", re.DOTALL)
DOCUMENTED_EXTERNAL_ID: Final = "joiner-prod"


def build_trust_policy(caller_arn: str, external_id: str = DOCUMENTED_EXTERNAL_ID) -> dict[str, Any]:
    """Return the trust policy of the page for *caller_arn* and *external_id* ("": none)."""
    policy = _read_policies()[0]
    [statement] = policy["Statement"]
    condition = {"Condition": {"StringEquals": {"sts:ExternalId": external_id}}} if external_id else {}
    fields = {name: value for name, value in statement.items() if name != "Condition"}
    return {**policy, "Statement": [{**fields, "Principal": {"AWS": caller_arn}, **condition}]}


def build_permissions_policy() -> dict[str, Any]:
    """Return the permissions policy of the page."""
    return _read_policies()[1]


def read_documented_trust_policy() -> dict[str, Any]:
    """Return the trust policy of the page."""
    return _read_policies()[0]


def _read_policies() -> list[dict[str, Any]]:
    section = _PAGE.read_text().partition("### Payer account")[2].partition("\n### ")[0]
    return [json.loads(block) for block in _JSON_BLOCK.findall(section)]
