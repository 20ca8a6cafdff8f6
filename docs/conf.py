"""How the pages in this folder become a site (`make docs`). Built or read, it asks no other machine for anything."""

import re
from pathlib import Path

from pygments.lexers.data import YamlLexer
from sphinx.application import Sphinx
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


def setup(app: Sphinx) -> None:
    app.connect("source-read", _stay_inside)


def _stay_inside(app: Sphinx, page: str, source: list[str]) -> None:
    """A link to a file of the repository that is no page becomes the file's name: the site holds this folder alone."""
    folder = Path(app.srcdir, page).parent

    def named(link: re.Match[str]) -> str:
        file = (folder / link["file"]).resolve()
        inside = file.is_relative_to(app.srcdir)
        return link[0] if inside else f"{link['text']} (`{file.relative_to(Path(app.srcdir).resolve().parent)}`)"

    source[0] = re.sub(r"\[(?P<text>[^\]]*)\]\((?P<file>\.\./[^)#]*)[^)]*\)", named, source[0])
