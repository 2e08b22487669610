"""Screenshots of commands and pages: `python -m docs.screenshots`."""
