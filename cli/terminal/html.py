"""HTML pages that open from a mail: one file, no script, no font, no external resource; light and dark mode.

All text from a cluster is untrusted: the templates escape every value, and the Content-Security-Policy of
`page.html.jinja` lets the browser neither run nor fetch anything. Jinja2 is imported when a page is rendered.
"""

from pathlib import Path
from typing import Any, Final

from shared.model.core.formatting import format_count, format_elapsed, format_usd, format_usd_per_hour, join_names

TEMPLATE_FOLDER: Final = Path(__file__).resolve().parents[1]
"""Templates are named by their path in this folder: ``report/report.html.jinja``."""


def render_template(name: str, **values: Any) -> str:  # noqa: ANN401 - any type
    """Return the page that the template *name* makes of *values*; a name that is missing there is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - only pages need it

    environment = Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    formats = (format_count, format_elapsed, format_usd, format_usd_per_hour, join_names)
    environment.globals |= {function.__name__: function for function in formats}
    return environment.get_template(name).render(values)
