"""How Sphinx builds the documentation site, of a folder that ``build.py`` has put together."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "Polyloom"
author = "The Polyloom developers"
project_copyright = author
version = release = version_of("polyloom")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
root_doc = "index"
html_theme = "furo"
html_title = f"Polyloom {release}"
html_theme_options = {
    "source_repository": "https://github.com/polyloom/polyloom/",
    "source_branch": "main",
    "source_directory": "docs/",
}
html_extra_path = ["extra"]
html_copy_source = False
exclude_patterns = ["extra", "ipython", "tutorials/examples"]

myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "separated"
nitpicky = False
