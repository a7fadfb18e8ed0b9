"""Point the launch and edit buttons at the repository that this checkout came from.

The repository is taken from the environment (GITHUB_REPOSITORY, as GitHub Actions sets it) or from
the git remote, so a fork launches itself without an edit. With neither there is no button.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # tools/notebooks.py asks for the address without Sphinx
    from sphinx.application import Sphinx
    from sphinx.config import Config

ROOT = Path(__file__).resolve().parent.parent.parent


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
        server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
        return f"{server}/{slug}"
    remote = _git("config", "--get", "remote.origin.url")
    web = re.fullmatch(
        r"(?:https?://|ssh://)?(?:[^@/]+@)?([\w.-]+)(?::\d+)?[:/](.+?)(?:\.git)?/?", remote
    )
    known = web is not None and re.search(r"\b(github|gitlab)\b", web[1])
    return f"https://{web[1]}/{web[2]}" if web is not None and known else ""


def branch() -> str:
    """The branch to launch and to edit: that of the workflow, else the one checked out."""
    named = os.environ.get("GITHUB_REF_NAME", "") or _git("rev-parse", "--abbrev-ref", "HEAD")
    return named if named not in ("", "HEAD") else "main"


def add_buttons(app: Sphinx, config: Config) -> None:
    """Fill the theme's options in, or switch every button off."""
    url = repository_url()
    options: dict[str, Any] = {
        "use_repository_button": bool(url),
        "use_edit_page_button": bool(url),
        "use_issues_button": bool(url),
        "launch_buttons": {},
    }
    if url:
        options |= {"repository_url": url, "repository_branch": branch(), "path_to_docs": ""}
        options["launch_buttons"] = {
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com" if "github" in url else "",
        }
    config.html_theme_options |= options


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", add_buttons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
