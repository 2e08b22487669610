"""Output: text, colors, charts, HTML, refreshed screens and errors."""
