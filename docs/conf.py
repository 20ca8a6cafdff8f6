"""How the pages in this folder become a site (`make docs`). Built or read, it asks no other machine for anything."""

from pygments.lexers.data import YamlLexer
from sphinx.highlighting import lexers

from flakestorm.version import __version__

project = "flakestorm"
author = "the flakestorm authors"
version = release = __version__

extensions = ["myst_parser"]
myst_heading_anchors = 4  # as other viewers of Markdown have them
exclude_patterns = ["Thumbs.db"]
suppress_warnings = ["misc.highlighting_failure"]  # what is shown may be a part of something
lexers["yml"] = YamlLexer()

smartquotes = False  # -- is two hyphens

html_theme = "furo"
html_title = "flakestorm"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
