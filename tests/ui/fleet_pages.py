"""Write pages from fleet documents, as joiner does."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader

ROOT: Final = Path(__file__).resolve().parents[2]
ASSETS: Final = ROOT / "cli" / "ui" / "assets"


def hash_text(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render_page(document: dict[str, Any], *, server: bool = False) -> str:
    """Return the page of *document*."""
    script, style = ((ASSETS / f"fleet.{ending}").read_text() for ending in ("js", "css"))
    environment = Environment(loader=FileSystemLoader(ROOT / "cli" / "ui"), autoescape=True)
    return environment.get_template("fleet_page.html.jinja").render(
        title=str(document.get("source", {}).get("title", "Joiner")),
        script=script,
        style=style,
        script_sha256=hash_text(script),
        style_sha256=hash_text(style),
        document=json.dumps(document, separators=(",", ":")).replace("<", "\\u003c"),
        server=server,
    )
