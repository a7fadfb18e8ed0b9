"""The site that a build has written, as the steps see it."""

from dataclasses import dataclass
from pathlib import Path

from sphinx.application import Sphinx

# What is written beside the pages of the book.
ADDITIONAL_PAGES = ("404", "search")


@dataclass
class Site:
    """The built site, with the pages that this build has written as texts by their paths."""

    app: Sphinx
    folder: Path
    pages: dict[Path, str]

    @property
    def is_whole(self) -> bool:
        """Whether this build has written every page of the book."""
        return all(self.path_of(name) in self.pages for name in self.app.env.found_docs)

    def path_of(self, name: str) -> Path:
        """The file of a page, such as "book/tour"."""
        return self.folder / f"{name}.html"

    def other_pages(self) -> dict[Path, str]:
        """The pages that an earlier build has written and finished."""
        paths = map(self.path_of, sorted({*self.app.env.found_docs, *ADDITIONAL_PAGES}))
        return {
            path: path.read_text(encoding="utf-8")
            for path in paths
            if path not in self.pages and path.exists()
        }
