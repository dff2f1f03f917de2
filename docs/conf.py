"""How Sphinx builds these pages: `make docs`."""

import sys
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

project = "geoopt"
author = "the geoopt authors"
copyright = author
release = version = installed("geoopt-compiler")

extensions = [
    "sphinx.ext.autodoc",
    "docstrings",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_codeautolink",
    "sphinx_design",
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
]

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["figures", "gallery"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3

default_role = "py:obj"
autodoc_mock_imports = [name for name in ("torch", "mpi4py", "petsc4py") if not find_spec(name)]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
numpydoc_show_class_members = False
add_module_names = False
nitpicky = False  # docstrings name stages and files in backticks; links between pages are checked always
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "geoopt"
html_static_path = ["_static"]
html_css_files = ["geoopt.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: [] for page in ("index", "install", "how_it_works", "benchmarks", "not_for")}
html_theme_options = {
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
    "back_to_top_button": False,
}

sphinx_gallery_conf = {
    "examples_dirs": "gallery",  # its scripts run, and their pages go to the second folder
    "gallery_dirs": "examples/gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": "shaded",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "write_computation_times": False,
    "show_signature": False,
    "show_memory": False,
}

codeautolink_concat_default = True  # the blocks of a page are one program
codeautolink_warn_on_missing_inventory = False
codeautolink_warn_on_failed_resolve = False
suppress_warnings = ["codeautolink.match_name"]  # names in the gallery, which sphinx-gallery has linked already
