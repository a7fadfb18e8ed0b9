"""Where this checkout comes from, its repository on GitHub and its branch, and where its site goes.

All are taken from the environment, as GitHub Actions sets it, or from git. So a fork launches and
links itself without an edit.
"""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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


def is_clone() -> bool:
    """Whether the folder is a repository of git, and not a copy without one."""
    return (ROOT / ".git").exists() and _git("rev-parse", "--git-dir") != ""


def repository_url() -> str:
    """The repository's web address, without a trailing slash or ``.git``, or an empty string."""
    if slug := os.environ.get("GITHUB_REPOSITORY", ""):
        return f"{os.environ.get('GITHUB_SERVER_URL') or 'https://github.com'}/{slug}"
    named = REMOTE.fullmatch(_git("remote", "get-url", "origin"))
    return f"https://github.com/{named[1]}" if named else ""


def branch() -> str:
    """The branch to launch and to edit.

    In a workflow it is the workflow's branch, or the branch that a pull request is to be merged
    into. Elsewhere it is the branch that is checked out.
    """
    return (
        os.environ.get("GITHUB_BASE_REF")
        or os.environ.get("GITHUB_REF_NAME")
        or _git("symbolic-ref", "--quiet", "--short", "HEAD")
        or "main"
    )


def site_address() -> str:
    """The address of the published site, with a slash at its end, or an empty string.

    It is what BOOK_URL says. Without that, it is where GitHub Pages publishes the repository: a
    repository that has the name of its owner's site is that site.
    """
    if url := os.environ.get("BOOK_URL", ""):
        return url.rstrip("/") + "/"
    server, _, slug = repository_url().rpartition("/github.com/")
    if not server:
        return ""
    owner, name = slug.split("/")
    host = f"{owner.lower()}.github.io"
    return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"
