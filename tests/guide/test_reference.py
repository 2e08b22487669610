"""The reference pages match the code."""

from docs.reference import labels
from docs.reference.__main__ import find_outdated_files
from docs.reference.commands import render_command_pages as command_pages
from docs.reference.kinds import render_kind_pages as kind_pages
from docs.reference.settings import render_setting_pages
from infra.settings.descriptions import read_descriptions
from infra.settings.settings import StackOptions, format_setting_name
from shared.model.core import labels as names


def test_reference_pages_are_up_to_date() -> None:
    assert sorted(find_outdated_files()) == [], "run `.venv/bin/python -m docs.reference`"


def test_every_crd_field_has_a_row_in_the_reference() -> None:
    pages = kind_pages()
    assert "| **`spec.template.spec.requirements[].key`** |" in pages["nodepool.md"]
    assert "| `spec.disruption.consolidateAfter` | string | `0s` |" in pages["nodepool.md"]
    assert "`WhenEmpty`, `WhenEmptyOrUnderutilized`, `Balanced`" in pages["nodepool.md"]
    assert "a pool with replicas has no weight" in pages["nodepool.md"]
    assert "a term with an alias is the only term" in pages["ec2nodeclass.md"]


def test_every_command_and_subcommand_has_a_reference_section() -> None:
    [page] = command_pages().values()
    assert "### joiner catalog build" in page
    assert "| `-o FILE`, `--output FILE` |" in page


def test_every_setting_has_its_description_in_the_reference() -> None:
    descriptions, page = read_descriptions(StackOptions), render_setting_pages()["settings.md"]
    for name in StackOptions.__struct_fields__:
        assert f"`{format_setting_name(name)}`" in page
        assert descriptions[name] in page


def test_every_label_key_is_documented() -> None:
    label_keys = {
        value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and "/" in value
    }
    documented_keys = {*labels.USER_KEYS, *labels.JOINER_KEYS, *names.WELL_KNOWN, names.HOSTNAME}
    assert label_keys - documented_keys == {names.AWS_PREFIX}
    assert not set(labels.USER_KEYS) & set(labels.JOINER_KEYS)
    assert all(names.normalize_label_key(old) != old for old in labels.OLDER_SPELLINGS)
