"""Sphinx configuration: MyST pages with the theme furo; `make docs` builds offline and treats warnings as errors."""  # noqa: INP001 - Sphinx reads it, no module imports it

project = "Joiner"
html_title = "Joiner"
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
html_theme = "furo"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
copybutton_exclude = ".linenos, .gp, .go"
