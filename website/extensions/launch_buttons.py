"""Point the launch and edit buttons at the repository that this checkout came from.

Where no repository on GitHub is known, the pages have no such button. The one for Colab leads to
the pages that the workflow writes for it (website/colab.py), so only a site that the workflow
builds has it.
"""

import os
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from website.colab import BRANCH
from website.repository import branch, repository_url

BUTTONS = ("use_repository_button", "use_edit_page_button", "use_issues_button")
BINDER = {"binderhub_url": "https://mybinder.org", "notebook_interface": "jupyterlab"}
COLAB = {"colab_url": "https://colab.research.google.com"}


def name_repository(app: Sphinx, config: Config) -> None:
    """Fill in the theme's options, or switch every button off."""
    url = repository_url()
    options: dict[str, object] = {name: bool(url) for name in BUTTONS}
    options["launch_buttons"] = {}
    if url:
        in_a_workflow = "GITHUB_REPOSITORY" in os.environ
        options |= {
            "launch_buttons": BINDER | (COLAB if in_a_workflow else {}),
            "repository_url": url,
            "repository_provider": "github",
            "repository_branch": branch(),
            "path_to_docs": "",
        }
    config.html_theme_options |= options


def lead_to_pages_for_colab(
    app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any
) -> None:
    """The theme knows one branch for all buttons."""
    for menu in context.get("header_buttons", []):
        for button in menu.get("buttons", []):
            if str(button.get("url", "")).startswith(COLAB["colab_url"]):
                button["url"] = button["url"].replace(f"/blob/{branch()}/", f"/blob/{BRANCH}/")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", name_repository)
    app.connect("html-page-context", lead_to_pages_for_colab, priority=900)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
