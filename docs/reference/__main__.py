"""`python -m docs.reference`: write the reference pages, the example of a settings file, and the dashboards."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from docs.reference import aws_requests, commands, dashboards, events, fleet_document, kinds, labels, output, settings
from infra.settings.files.changes import render_settings_file

FOLDER: Final = Path(__file__).resolve().parent


def render_all_pages() -> dict[Path, str]:
    """Render all reference pages, by path."""
    text_by_name = {
        **kinds.render_kind_pages(),
        **commands.render_command_pages(),
        **settings.render_setting_pages(),
        **labels.render_label_pages(),
        **output.render_output_pages(),
        **aws_requests.render_request_page(),
        **events.render_event_pages(),
        **fleet_document.render_fleet_pages(),
    }
    return {FOLDER / name: text for name, text in text_by_name.items()}


def find_outdated_files() -> dict[Path, str]:
    """Return the expected text of each file that is missing or has a different text, by path."""
    expected_text_by_path = (
        render_all_pages() | {settings.EXAMPLE_FILE: render_settings_file()} | dashboards.render_dashboards()
    )
    return {path: text for path, text in expected_text_by_path.items() if not _has_text(path, text)}


def _has_text(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write each outdated file and print its path."""
    parser = argparse.ArgumentParser(prog="python -m docs.reference", description="Write the pages of the reference.")
    parser.add_argument("--pages", action="store_true", help="do not write clusters/example.yaml and examples/grafana")
    only_pages = parser.parse_args(arguments).pages
    for path, text in sorted(find_outdated_files().items()):
        if FOLDER in path.parents or not only_pages:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
