"""What the repository says about itself stays true."""

import re
import subprocess
from pathlib import Path

import cover
import yaml

ROOT = Path(__file__).resolve().parent.parent
MACHINE_PATH = re.compile(r"(?<![\w.])(/(tmp|home|root|Users|work|mnt)/\w|[A-Z]:\\\\\w)")


def test_readers_requirements_are_exact_and_constrained() -> None:
    pinned = re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "requirements.txt").read_text(), re.M)
    constraints = (ROOT / "constraints.txt").read_text().lower().replace("_", "-")
    assert {"jupyter-book", "numpy", "torch", "nbval"} <= {name for name, _ in pinned}
    for name, version in pinned:
        assert f"\n{name}=={version}\n" in constraints


def test_readme_names_the_torch_that_is_pinned() -> None:
    (torch,) = re.findall(r"^torch==\S+", (ROOT / "requirements.txt").read_text(), re.M)
    assert torch in (ROOT / "README.md").read_text()


def test_no_notebook_is_left_out_of_the_contents() -> None:
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = {page["file"] for part in contents["parts"] for page in part["chapters"]}
    assert {f"book/{path.stem}" for path in (ROOT / "book").glob("*.ipynb")} <= listed


def test_no_file_holds_a_path_of_one_machine() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    texts = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    assert len(texts) > 100
    found = [name for name, text in texts.items() if MACHINE_PATH.search(text.decode("latin-1"))]
    assert found == []


def test_cover_is_drawn_by_the_library() -> None:
    short = re.compile(r"(\d\.\d\d)\d+")  # other processors differ in the last decimals
    no_pixels = re.compile(r"base64,[^\"]+")
    drawn, stored = (
        no_pixels.sub("", short.sub(r"\1", svg))
        for svg in (cover.draw_svg(), cover.COVER.read_text())
    )
    assert drawn == stored
