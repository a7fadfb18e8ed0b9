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
from urllib.parse import quote

if TYPE_CHECKING:  # tools/notebooks.py asks for the address without Sphinx
    from sphinx.application import Sphinx
    from sphinx.config import Config

ROOT = Path(__file__).resolve().parent.parent.parent
BINDER, COLAB = "https://mybinder.org/v2", "https://colab.research.google.com/github"
BINDER_PROVIDERS = {"github.com": "gh", "gitlab.com": "gl"}


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
        server = os.environ.get("GITHUB_SERVER_URL", "") or "https://github.com"
        return f"{server}/{slug}"
    return web_address(_git("remote", "get-url", "origin"))


def web_address(remote: str) -> str:
    """Where a browser finds a remote on GitHub or GitLab, theirs or one's own, else nothing.

    Names, passwords and the port of ssh are left out.
    """
    parts = re.fullmatch(
        r"(?:(?P<scheme>https?|ssh|git)://)?(?:[^@/]+@)?(?P<host>[\w.-]+)(?P<port>:\d+)?"
        r"[:/]/?(?P<path>[^/].*?)(?:\.git)?/?",
        remote,
    )
    if parts is None or not re.search(r"\b(github|gitlab)\b", parts["host"]):
        return ""
    host = re.sub(r"^(?:alt)?ssh\.(?=git(?:hub|lab)\.com$)", "", parts["host"])
    port = parts["port"] or "" if parts["scheme"] in ("http", "https") else ""
    return f"https://{host}{port}/{parts['path']}"


def provider_of(url: str) -> str:
    """The kind of a repository's host, as the theme calls it."""
    return "gitlab" if "gitlab" in url.split("/")[2] else "github"


def branch() -> str:
    """The branch to launch and to edit.

    That of the workflow, for a pull request the one that it is meant for; else the branch or the
    tag that is checked out; on a commit without a name, the default branch of the remote.
    """
    names = ("GITHUB_BASE_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")
    return (
        next((named for name in names if (named := os.environ.get(name, ""))), "")
        or _git("symbolic-ref", "--quiet", "--short", "HEAD")
        or _git("describe", "--tags", "--exact-match")
        or _git("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")[len("origin/") :]
        or "main"
    )


def launch_links(url: str, ref: str, notebook: str) -> dict[str, str]:
    """Where Binder and Colab open a notebook of the repository: Colab takes GitHub's alone."""
    host, slug = url.split("/", 3)[2:]
    if provider := BINDER_PROVIDERS.get(host):
        # Binder reads the groups of a project on GitLab as one name.
        place = f"{provider}/{quote(slug, safe='/' if provider == 'gh' else '')}"
    else:
        place = f"git/{quote(url, safe='')}"
    page = quote(notebook)
    links = {"Binder": f"{BINDER}/{place}/{quote(ref)}?urlpath=lab/tree/{page}"}
    if host == "github.com":
        links["Colab"] = f"{COLAB}/{slug}/blob/{quote(ref)}/{page}"
    return links


def name_repository(app: Sphinx, config: Config) -> None:
    """Fill in the theme's options, or switch every button off."""
    url = repository_url()
    buttons = ("use_repository_button", "use_edit_page_button", "use_issues_button")
    options: dict[str, Any] = dict.fromkeys(buttons, bool(url))
    if url:
        options |= {"repository_url": url, "repository_branch": branch(), "path_to_docs": ""}
        options |= {"repository_provider": provider_of(url)}
    # The theme's own links fail for groups of GitLab, so the buttons are made here.
    config.html_theme_options |= {**options, "launch_buttons": {}}


def add_launch_buttons(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: object
) -> None:
    """Put a menu with the page's launch links before the other buttons of its header."""
    options = app.config.html_theme_options
    if context.get("page_source_suffix") != ".ipynb" or not options.get("repository_url"):
        return
    links = launch_links(options["repository_url"], options["repository_branch"], f"{page}.ipynb")
    logos = {"Binder": "logo_binder.svg", "Colab": "logo_colab.png"}
    buttons = [
        {
            "type": "link",
            "text": name,
            "tooltip": f"Launch on {name}",
            "icon": f"_static/images/{logos[name]}",
            "url": link,
        }
        for name, link in links.items()
    ]
    menu = {"type": "group", "tooltip": "Launch this page", "icon": "fas fa-rocket"}
    context["header_buttons"].insert(0, {**menu, "buttons": buttons, "label": "launch-buttons"})


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", name_repository)
    app.connect("html-page-context", add_launch_buttons, priority=502)  # after the theme's buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}
