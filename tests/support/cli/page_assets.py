"""The interactive page in tests: a script and a style that need no Node.js, and the document of a page."""

import re
from pathlib import Path

from cli.fleet.document.fleet_document import FleetDocument
from cli.fleet.document.json_format import decode_fleet_document


def write_fake_assets(folder: Path) -> Path:
    """Write the scripts and the styles to *folder*; return it."""
    for name in ("fleet", "hub"):
        (folder / f"{name}.js").write_text("void 0;", encoding="utf-8")
        (folder / f"{name}.css").write_text("body { margin: 0 }", encoding="utf-8")
    return folder


def read_embedded_document(html: str) -> FleetDocument:
    """Return the fleet document of the page *html*."""
    [body] = re.findall(r'<script type="application/json" id="fleet-document">(.*?)</script>', html, re.DOTALL)
    return decode_fleet_document(body.encode())
