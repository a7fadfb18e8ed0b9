"""Point the launch and edit buttons at the repository that this checkout came from.

Where no repository on GitHub is known, the pages have no such button.
"""

from sphinx.application import Sphinx
from sphinx.config import Config

from website.repository import branch, repository_url

BUTTONS = ("use_repository_button", "use_edit_page_button", "use_issues_button")
LAUNCH = {
    "binderhub_url": "https://mybinder.org",
    "colab_url": "https://colab.research.google.com",
    "notebook_interface": "jupyterlab",
}


def name_repository(app: Sphinx, config: Config) -> None:
    """Fill in the theme's options, or switch every button off."""
    url = repository_url()
    options: dict[str, object] = {name: bool(url) for name in BUTTONS}
    options["launch_buttons"] = LAUNCH if url else {}
    if url:
        options |= {
            "repository_url": url,
            "repository_provider": "github",
            "repository_branch": branch(),
            "path_to_docs": "",
        }
    config.html_theme_options |= options


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", name_repository)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
