"""The pictures in docs/images: what they show is what the commands say today."""

import re
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from docs.screenshots.__main__ import FOLDER, ROOT, SCREENSHOTS, draw_screenshot, prepare_journal
from docs.screenshots.page_pictures import MAX_PICTURE_BYTES, PAGE_PICTURES
from docs.screenshots.pictures import extract_text, render_terminal

MAKE = "write the pictures anew: .venv/bin/python -m docs.screenshots"


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shots") / "journal"
    prepare_journal(folder)
    return folder


@pytest.mark.parametrize("shot", SCREENSHOTS, ids=lambda shot: shot.name)
def test_screenshot_matches_the_current_command_output(journal: Path, shot: object) -> None:
    screenshot = next(candidate for candidate in SCREENSHOTS if candidate == shot)
    picture = (FOLDER / f"{screenshot.name}.svg").read_text(encoding="utf-8")
    new_picture = draw_screenshot(screenshot, journal)
    assert extract_text(picture) == extract_text(new_picture), MAKE
    assert extract_text(picture)[0] == f"$ {screenshot.command}"
    assert picture == new_picture, MAKE


def test_every_screenshot_is_generated_and_shown_on_a_page() -> None:
    names = {f"{screenshot.name}.svg" for screenshot in SCREENSHOTS} | {picture.name for picture in PAGE_PICTURES}
    assert {path.name for path in FOLDER.iterdir()} == names
    pages = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts
    )
    assert [name for name in sorted(names) if f"images/{name})" not in pages] == []


def test_pictures_of_pages_are_small() -> None:
    sizes = {picture.name: (FOLDER / picture.name).stat().st_size for picture in PAGE_PICTURES}
    assert {name: size for name, size in sizes.items() if size > MAX_PICTURE_BYTES} == {}


def test_screenshot_loads_no_external_resources() -> None:
    for path in FOLDER.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        root = ET.fromstring(text)  # noqa: S314 - our own file
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r"href|<script|url\((?!#)|@import|@font-face|<image", text)
        assert text.count("http") == 1


def test_screenshot_keeps_terminal_colors_and_columns() -> None:
    text = "a \x1b[31m<red>\x1b[0m b\n\x1b[1m\x1b[36mbold\x1b[0m"
    picture = render_terminal("joiner x", text)
    assert extract_text(picture) == ["$ joiner x", "a <red> b", "bold"]
    red_class, bold_class = (
        re.search(rf"\.(terminal-r\d+) {{ {style} }}", picture)
        for style in ("fill: #ff7b72", "fill: #56d4dd;font-weight: bold")
    )
    assert red_class is not None
    assert bold_class is not None
    assert re.search(
        rf'class="{red_class[1]}" x="24.4" y="44.4" textLength="61"[^>]*>{escape("<red>")}</text>', picture
    )
    assert re.search(rf'class="{bold_class[1]}"[^>]*>bold</text>', picture)


def test_long_screenshot_text_is_truncated() -> None:
    assert extract_text(render_terminal("c", "1\n2\n3\n4", max_lines=2)) == ["$ c", "1", "2", "…"]
