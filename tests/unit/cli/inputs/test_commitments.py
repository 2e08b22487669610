"""Files with commitments: errors name the file, the line and the field."""

from pathlib import Path

import pytest

from cli.inputs.commitments import read_commitments
from cli.terminal.errors import InputError

DOCS = Path(__file__).parents[4] / "docs" / "guide" / "money.md"
EXAMPLE = Path(__file__).parents[4] / "examples" / "commitments.yaml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("usdPerHour: 2.50 ", "usdPerHour: -1 ", "F:5: savingsPlans[0] (SP): usdPerHour: Expected"),
        (
            "discountPercent: 27",
            "discountPercent: 270",
            "F:8: savingsPlans[0] (SP): rates[0].discountPercent: Expected",
        ),
        (
            "  region: us-east-1\n  instanceFamily",
            "  instanceFamily",
            "F:10: savingsPlans[1] (EC2): region: is missing",
        ),
        ("  count: 2", "  number: 2", "F:27: reservedInstances[1] (RI): number: is an unknown field"),
        ("reservedInstances:", "reserved:", "F:18: unknown field reserved"),
    ],
)
def test_error_names_line_and_field(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(EXAMPLE.read_text().replace(old, new, 1))
    names = {"11111111-2222-3333-4444-555555555555": "SP", "66666666-7777-8888-9999-000000000000": "EC2"}
    names |= {"ffffffff-0000-1111-2222-333333333333": "RI", str(file): "F"}
    with pytest.raises(InputError) as raised:
        read_commitments(str(file))
    text = str(raised.value)
    for long_name, name in names.items():
        text = text.replace(long_name, name)
    assert text.startswith(message)


@pytest.mark.parametrize("text", ["", "a: [", "{}\n---\n{}"])
def test_file_that_is_not_one_document_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(InputError, match=r"c\.yaml"):
        read_commitments(str(tmp_path / "c.yaml"))


def test_missing_file_is_reported() -> None:
    with pytest.raises(InputError, match=r"--commitments nowhere\.yaml: No such file"):
        read_commitments("nowhere.yaml", "--commitments nowhere.yaml")


def test_example_of_the_guide_is_valid(tmp_path: Path) -> None:
    example = next(block for block in DOCS.read_text().split("```yaml\n") if "savingsPlans:" in block).split("```")[0]
    (tmp_path / "c.yaml").write_text(example)
    document = read_commitments(str(tmp_path / "c.yaml"))
    assert {plan.type for plan in document.savings_plans} == {"Compute", "EC2Instance"}
    assert {reserved.zone is None for reserved in document.reserved_instances} == {True, False}
