"""The pictures in docs/images: what they show is what the commands say today."""

import re
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from docs.screenshots.__main__ import FOLDER, REPORT, ROOT, SHOTS, prepare, said_by
from docs.screenshots.pictures import drawn, text_of

MAKE = "write the pictures anew: .venv/bin/python -m docs.screenshots"


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shots") / "journal"
    prepare(folder)
    return folder


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.name)
def test_a_picture_shows_what_its_command_says(journal: Path, shot: object) -> None:
    one = next(each for each in SHOTS if each == shot)
    picture = (FOLDER / f"{one.name}.svg").read_text(encoding="utf-8")
    again = drawn(one.command, said_by(one, journal), one.most)
    assert text_of(picture) == text_of(again), MAKE
    assert text_of(picture)[0] == f"$ {one.command}"
    assert picture == again, MAKE


def test_every_picture_is_made_by_the_script_and_shown_on_some_page() -> None:
    names = {f"{one.name}.svg" for one in SHOTS} | {REPORT}
    assert {path.name for path in FOLDER.iterdir()} == names
    pages = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts
    )
    assert [name for name in sorted(names) if f"images/{name})" not in pages] == []


def test_a_picture_needs_nothing_from_elsewhere() -> None:
    for path in FOLDER.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        root = ET.fromstring(text)  # noqa: S314 - our own file
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r"href|<script|url\(|@import|<image", text)
        assert text.count("http") == 1


def test_colours_and_columns_are_those_of_the_terminal() -> None:
    said = "a \x1b[31m<red>\x1b[0m b\n\x1b[1m\x1b[36mbold\x1b[0m"
    picture = drawn("joiner x", said)
    assert text_of(picture) == ["$ joiner x", "a <red> b", "bold"]
    assert f'style="fill:#ff7b72">{escape("<red>")}</tspan>' in picture
    assert 'style="font-weight:700;fill:#56d4dd">bold' in picture
    assert re.search(r'<tspan x="(\S+)" textLength="\S+" style="fill:#ff7b72"', picture)


def test_a_long_text_is_cut() -> None:
    assert text_of(drawn("c", "1\n2\n3\n4", most=2)) == ["$ c", "1", "2", "…"]
