"""Point the launch and edit buttons at the repository on GitHub that this checkout came from.

The repository is taken from the environment (GITHUB_REPOSITORY, as GitHub Actions sets it) or from
the git remote, so a fork launches itself without an edit. With neither there is no button.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # tools/notebooks.py asks for the address without Sphinx
    from sphinx.application import Sphinx
    from sphinx.config import Config

ROOT = Path(__file__).resolve().parent.parent.parent
BUTTONS = ("use_repository_button", "use_edit_page_button", "use_issues_button")
LAUNCH = {
    "binderhub_url": "https://mybinder.org",
    "colab_url": "https://colab.research.google.com",
    "notebook_interface": "jupyterlab",
}
REMOTE = re.compile(
    r"(?:https://(?:[^@/]+@)?|(?:ssh://)?git@)github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?"
)


def _git(*arguments: str) -> str:
    """What a git command prints, or nothing where there is no git or no repository."""
    command = ("git", "-C", str(ROOT), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def repository_url() -> str:
    """The repository's web address, without a trailing slash or ``.git``, or an empty string."""
    if slug := os.environ.get("GITHUB_REPOSITORY", ""):
        return f"{os.environ.get('GITHUB_SERVER_URL') or 'https://github.com'}/{slug}"
    named = REMOTE.fullmatch(_git("remote", "get-url", "origin"))
    return f"https://github.com/{named[1]}" if named else ""


def branch() -> str:
    """The branch to launch and to edit: that of the workflow, for a pull request the one that it is
    meant for, else the one that is checked out."""
    return (
        os.environ.get("GITHUB_BASE_REF")
        or os.environ.get("GITHUB_REF_NAME")
        or _git("symbolic-ref", "--quiet", "--short", "HEAD")
        or "main"
    )


def name_repository(app: Sphinx, config: Config) -> None:
    """Fill in the theme's options, or switch every button off."""
    url = repository_url()
    options: dict[str, object] = {name: bool(url) for name in BUTTONS}
    options["launch_buttons"] = LAUNCH if url else {}
    if url:
        options |= {"repository_url": url, "repository_provider": "github"}
        options |= {"repository_branch": branch(), "path_to_docs": ""}
    config.html_theme_options |= options


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", name_repository)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
