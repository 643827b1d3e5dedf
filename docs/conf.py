"""Configuration of the documentation site; `make docs` builds it without network."""

from __future__ import annotations

import os
import warnings
from typing import Any

import mmes

# The examples are small: threads of BLAS would only wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

project = "mmes"
author = "The mmes developers"
copyright = author  # the name that Sphinx reads
version = release = mmes.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.py", "gallery/*.md5", "**/GALLERY_HEADER.rst"]
nitpicky = True
smartquotes = False  # quotes stand around words of code
default_role = "literal"  # single backticks in docstrings are words of code

# Markdown
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

# The reference, from the docstrings
autosummary_generate = True
autodoc_typehints = "none"  # types stand in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
doctest_global_setup = "import mmes\nimport numpy as np"

# The gallery
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,  # its page would load scripts from elsewhere
    "remove_config_comments": True,
    "capture_repr": (),  # what is printed is shown, what merely comes back is not
    "plot_gallery": True,
    "matplotlib_animations": False,
}
warnings.filterwarnings("ignore", message=".*non-interactive.*")

# The look
html_theme = "furo"
html_title = f"mmes {release}"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options: dict[str, Any] = {
    "light_css_variables": {"color-brand-primary": "#1f5f99", "color-brand-content": "#1f5f99"},
    "dark_css_variables": {"color-brand-primary": "#7fb8ea", "color-brand-content": "#7fb8ea"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
