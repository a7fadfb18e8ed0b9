"""What the repository says about itself stays true."""

import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from tests import run
from website import cover
from website.built_site import chapters
from website.repository import is_clone
from website.vendor import MANIFEST, VENDOR, checksums

ROOT = Path(__file__).resolve().parent.parent
MACHINE_PATH = re.compile(
    r"(?<![\w.])(/(tmp|home|root|Users|work|mnt)/\w|[A-Z]:\\\\\w|[A-Z]:\\(Users|Windows|Program))"
)
REGISTRY = re.compile(r"pypi\.org|pythonhosted|npmjs\.(com|org)|deb\.debian")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PACKAGES = json.loads(MANIFEST.read_text(encoding="utf-8"))
FOLDERS = r"book|pe_lib|pe_book|experiments|benchmarks|tests|website|binder|\.github|\.ci"
# CONTRIBUTING.md shows how to write these.
TO_BE_WRITTEN = {"pe_book/live/hand.js", "pe_book/live/data/hand.js", "conf.py"}
# The jobs that may write, and what.
WRITERS = {
    ("book", "colab"): {"contents": "write"},
    ("book", "deploy"): {"pages": "write", "id-token": "write"},
    ("newest", "newest"): {"contents": "read", "issues": "write"},
}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def files_of_the_repository(*patterns: str) -> list[str]:
    """The files that git keeps, and new ones that it does not ignore."""
    if not is_clone():
        pytest.skip("git cannot list the files of this folder")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    return [name for name in names if (ROOT / name).is_file()]


def test_torch_s_version_stands_in_one_place() -> None:
    """It is typed in requirements.txt, and `make constraints` copies it to constraints.txt."""
    (torch,) = re.findall(r"^torch==([\d.]+)$", read("requirements.txt"), re.M)
    assert f"\ntorch=={torch}\n" in read("constraints.txt")
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "MAINTAINING.md",
        "pyproject.toml",
        "binder/requirements.txt",
        "benchmarks/requirements.txt",
    ):
        assert torch not in read(name), name


def test_every_pinned_package_runs_on_the_oldest_python() -> None:
    """On its first release too: of Python 3.11, Debian has 3.11.2."""
    pins = re.findall(r"^([\w.-]+)==", read("constraints.txt"), re.M)
    assert len(pins) > 100
    asked = {name: python_of(name) for name in pins}
    # Some are for other systems or versions of Python and not installed here; a few say nothing.
    assert sum(versions != "" for versions in asked.values()) > 0.8 * len(pins)
    too_new = [name for name in pins if "3.11.0" not in SpecifierSet(asked[name])]
    assert too_new == []


def python_of(name: str) -> str:
    """The versions of Python that a package asks for, or nothing where it is not installed."""
    try:
        return str(metadata(name).json.get("requires_python", ""))
    except PackageNotFoundError:
        return ""


def test_the_landing_page_lists_every_chapter_in_order() -> None:
    contents = [Path(name).stem for name in chapters()]
    assert re.findall(r"^- \[\]\((\w+)\.ipynb\)$", read("book/index.md"), re.M) == contents


def test_no_notebook_is_left_out_of_the_contents() -> None:
    contents = yaml.safe_load(read("_toc.yml"))
    listed = {page["file"] for part in contents["parts"] for page in part["chapters"]}
    assert {f"book/{path.stem}" for path in (ROOT / "book").glob("*.ipynb")} <= listed


def test_no_file_holds_a_path_of_one_machine() -> None:
    texts = {name: (ROOT / name).read_bytes() for name in files_of_the_repository()}
    assert len(texts) > 100
    found = [name for name, text in texts.items() if MACHINE_PATH.search(text.decode("latin-1"))]
    assert found == []


def test_packages_are_named_without_the_host_of_a_registry() -> None:
    """pip and npm find a package by its name, wherever they are told to look for it."""
    texts = ("*.md", "*.py", "*.txt", "*.yml", "*.toml", "*.ipynb", "Makefile")
    names = [name for name in files_of_the_repository(*texts) if name != "tests/test_repository.py"]
    assert len(names) > 100
    assert [name for name in names if REGISTRY.search(read(name))] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "MAINTAINING.md"])
def test_readers_are_told_of_files_and_commands_that_exist(page: str) -> None:
    """In the prose and in the commands that they are to type."""
    text = read(page)
    paths = set(re.findall(rf"(?<![\w./])(?:{FOLDERS})/(?:[\w./-]*[\w/])?", text))
    assert len(paths) > 5
    assert {path for path in paths if not (ROOT / path).exists()} <= TO_BE_WRITTEN
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))
    commands = re.findall(r"(?:`|^)make ([a-z -]*[a-z])", text, re.M)
    assert commands
    for command in commands:
        assert set(command.split()) <= targets, command


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "MAINTAINING.md", "pe_lib/README.md"]
)
def test_names_of_files_and_folders_are_those_of_some(page: str) -> None:
    """Also without the folder that they stand in: a table of a folder names what is in it."""
    paths = [Path(name) for name in files_of_the_repository()]
    known = {str(one) for path in paths for one in (path, *path.parents)}
    known |= {Path(name).name for name in known}
    pattern = r"`(\.?\w[\w.-]*/[\w./-]*|[\w-]+\.(?:css|js|md|py|txt|yml))`"
    named = {name.rstrip("/") for name in re.findall(pattern, read(page))}
    assert named
    missing = {name for name in named - known if not name.startswith("_build/")}
    assert missing <= TO_BE_WRITTEN


@pytest.mark.parametrize("page", ["README.md", "pe_lib/README.md"])
def test_a_report_that_is_shown_is_the_one_that_is_printed(page: str) -> None:
    """Its lines, or some of them in their order."""
    examples = re.findall(r"```python\n(.*?)```", read(page), re.S)
    (shown,) = re.findall(r"```text\n(.*?)```", read(page), re.S)
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for example in examples:
            exec(example, names)
    printed = iter(out.getvalue().splitlines())
    assert [line for line in shown.splitlines() if line not in printed] == []


def test_shell_commands_can_be_pasted_into_any_shell() -> None:
    """The shell of macOS, zsh, passes a comment behind a command on to the command."""
    pages = ["README.md", "pe_lib/README.md", "book/index.md"]
    blocks = [
        block
        for page in pages
        for block in re.findall(r"^```sh\n(.*?)^```", read(page), re.M | re.S)
    ]
    assert len(blocks) >= len(pages)
    assert [block for block in blocks if "#" in block] == []


def test_cover_is_drawn_by_the_library(tmp_path: Path) -> None:
    cover.draw_cover(tmp_path / "cover.svg")
    # Other processors differ in the last decimals, and in what they make of the heat map's pixels,
    # of which Matplotlib makes the name of the picture, too.
    texts = [
        (folder / "cover.svg").read_text(encoding="utf-8")
        for folder in (tmp_path, cover.COVER.parent)
    ]
    varies = r"(?<=\.\d\d)\d+|base64,[^\"]+|(?<=id=\"image)[0-9a-f]+"
    drawn, stored = (re.sub(varies, "", text) for text in texts)
    assert drawn == stored


# What others made


def test_what_others_made_is_as_it_was_fetched() -> None:
    assert {path.name for path in VENDOR.iterdir() if path.is_dir()} == {
        package["folder"] for package in PACKAGES
    }
    for package in PACKAGES:
        assert checksums(VENDOR / package["folder"]) == package["sha256"]


def test_every_folder_of_others_work_is_listed_with_its_version_and_licence() -> None:
    """A folder of others' work is one that holds a licence, and everything under vendor."""
    row = r"^\| `((?:book|website)/[^`]+)` \| .+? \| (.+?) \| (.+?) \|$"
    listed = {folder: rest for folder, *rest in re.findall(row, read("LICENSES.md"), re.M)}
    folders = (ROOT / "book", ROOT / "website")
    licensed = {path.parent for one in folders for path in one.rglob("LICENSE*")}
    assert {path.relative_to(ROOT).as_posix() for path in licensed} == set(listed)
    for package in PACKAGES:
        named = listed[f"website/assets/vendor/{package['folder']}"]
        assert named == [package["version"], package["licence"]]


# Workflows


def test_workflows_are_valid_and_safe() -> None:
    """They follow their schema, actions are pinned by commit, permissions are few, no script is put
    together from what others write, and no credentials are left behind."""
    command = [str(Path(sys.executable).parent / "zizmor"), "--offline", "--strict-collection"]
    subprocess.run([*command, *WORKFLOWS], check=True)


def test_every_check_runs_in_a_workflow() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    named = " ".join(re.findall(r"tests/run\.py (.+)$", texts, re.M))
    assert set(shlex.split(named)) == set(run.CHECKS)


def jobs_of(path: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return jobs


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_permissions_are_few(path: Path) -> None:
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}
    for name, job in jobs_of(path).items():
        granted = job.get("permissions", {})
        if "write" in granted.values():
            assert granted == WRITERS[path.stem, name]
        assert job["timeout-minutes"] <= 60


def test_every_supported_python_is_tested() -> None:
    matrix = jobs_of(ROOT / ".github" / "workflows" / "book.yml")["test"]["strategy"]["matrix"]
    oldest = re.findall(
        r'requires-python = ">=(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )
    assert matrix["python"][0] == oldest[0]
    assert len(matrix["python"]) >= 3


def test_only_the_default_branch_is_published() -> None:
    book = jobs_of(ROOT / ".github" / "workflows" / "book.yml")
    steps = {step.get("id", step.get("name")): step for step in book["build"]["steps"]}
    assert "github.event.repository.default_branch" in steps["pages"]["if"]
    assert "github.event_name != 'pull_request'" in steps["pages"]["if"]
    assert steps["artifact"]["if"] == "steps.pages.outcome == 'success'"
    for job in (book["colab"], book["deploy"]):
        assert job["if"] == "needs.build.outputs.published == 'true'"
        assert set(job["needs"]) == {"test", "oldest", "build"}
