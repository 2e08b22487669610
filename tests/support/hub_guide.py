"""The policies in docs/guide/hub.md: of the role, of operators, and of who sends the daily report."""

import json
import re
from pathlib import Path
from typing import Any, Final

GUIDE: Final = Path(__file__).parents[2] / "docs/guide/hub.md"
BUCKET: Final = "joiner-batch-bucket"
ACCOUNT: Final = "444455556666"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/joiner-hub"
OPERATORS: Final = "arn:aws:iam::123456789012:role/operators"


def read_policies(*, bucket: str = BUCKET, account: str = ACCOUNT) -> list[dict[str, Any]]:
    """Return the trust policy, the permissions policy and the policy of the operators for *bucket* in *account*."""
    page = GUIDE.read_text().replace(BUCKET, bucket).replace(ACCOUNT, account)
    return _read_blocks(page.partition("## Role in another account")[2])


def read_report_policy() -> dict[str, Any]:
    """Return the policy of who sends the daily report."""
    [policy] = _read_blocks(GUIDE.read_text().partition("## Role in another account")[0])
    return policy


def _read_blocks(page: str) -> list[dict[str, Any]]:
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
