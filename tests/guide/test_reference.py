"""The reference says what the code says."""

from docs.reference import labels
from docs.reference.__main__ import stale
from docs.reference.commands import pages as command_pages
from docs.reference.kinds import pages as kind_pages
from docs.reference.knobs import docstrings
from docs.reference.knobs import pages as knob_pages
from infra.knobs import Knobs
from shared.model import labels as names


def test_the_pages_are_what_the_generator_writes() -> None:
    assert sorted(stale()) == [], "run `.venv/bin/python -m docs.reference`"


def test_every_field_of_a_definition_has_its_row() -> None:
    said = kind_pages()
    assert "| **`spec.template.spec.requirements[].key`** |" in said["nodepool.md"]
    assert "| `spec.disruption.consolidateAfter` | string | `0s` |" in said["nodepool.md"]
    assert "`WhenEmpty`, `WhenEmptyOrUnderutilized`, `Balanced`" in said["nodepool.md"]
    assert "a pool with replicas has no weight" in said["nodepool.md"]
    assert "a term with an alias is the only term" in said["ec2nodeclass.md"]


def test_every_command_has_its_section_and_what_is_below_it() -> None:
    [page] = command_pages().values()
    assert "### joiner catalog build" in page
    assert "| `-o FILE`, `--output FILE` |" in page


def test_every_knob_says_what_is_written_below_it() -> None:
    told, page = docstrings(Knobs), knob_pages()["knobs.md"]
    assert told["mode"].replace("``", "`") in page
    assert all(f"`joiner:{name}`" in page for name in Knobs.__struct_encode_fields__)


def test_every_key_that_the_model_knows_is_told_of() -> None:
    every = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and "/" in value}
    told = {*labels.PEOPLES, *labels.OURS, *names.WELL_KNOWN, names.HOSTNAME}
    assert every - told == {names._AWS}  # noqa: SLF001 - a prefix, no key
    assert not set(labels.PEOPLES) & set(labels.OURS)
    assert all(names.normalised(old) != old for old in labels.OLDER)
