"""The interactive page of a fleet: one file with its script, its style and its data; nothing is loaded from a network.

`make ui` builds the script and the style from `ui/`; a wheel contains them. The Content-Security-Policy of the page
names their digests, so the browser runs no other script.
"""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from cli.fleet.document.json_format import escape_for_html
from cli.terminal.errors import InputError
from cli.terminal.html import render_template

ASSET_FOLDER: Final = Path(__file__).parent / "assets"
SERVER_DOCUMENT: Final = b'{"server": true}'
"""The document of a page that fetches its data from the server of `joiner ui`."""
FLEET_TEMPLATE: Final = "ui/fleet_page.html.jinja"


def _read_asset(name: str) -> str:
    try:
        return (ASSET_FOLDER / name).read_text(encoding="utf-8")
    except OSError:
        raise InputError(f"{name} is not built: run `make ui` in the checkout (it needs Node.js 22 or 24)") from None


def render_fleet_page(
    title: str,
    body: bytes = SERVER_DOCUMENT,
    *,
    template: str = FLEET_TEMPLATE,
    asset: str = "fleet",
    extra_style: str = "",
    **values: Any,  # noqa: ANN401 - the values of *template*
) -> str:
    """Return the page of the fleet document *body*.

    *template* can extend the page; *extra_style* is then its style. *asset* names the script and the style.

    Raises:
        InputError: The script or the style is not built.
    """
    script, style = _read_asset(f"{asset}.js"), _read_asset(f"{asset}.css") + extra_style
    return render_template(
        template,
        title=title,
        document=escape_for_html(body),
        script=script,
        style=style,
        script_sha256=compute_csp_digest(script),
        style_sha256=compute_csp_digest(style),
        server=body == SERVER_DOCUMENT,
        **values,
    )


def compute_csp_digest(text: str) -> str:
    """Return the SHA-256 digest of an inline script or style, as a Content-Security-Policy has it.

    >>> compute_csp_digest("")
    '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return b64encode(sha256(text.encode()).digest()).decode()
