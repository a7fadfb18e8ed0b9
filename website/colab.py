"""Write the pages as Colab needs them: it opens a notebook of GitHub without its repository.

    python website/colab.py FOLDER

Each notebook gets a first cell that fetches the repository, whose address is known where this runs:
the workflow that publishes the site pushes the folder to the branch `colab`, and the button on a
page leads there. The pages of the repository itself stay without that cell.
"""

import json
import sys
from pathlib import Path
from typing import Any

from website.repository import branch, repository_url

ROOT = Path(__file__).resolve().parent.parent
BRANCH = "colab"
FETCH = """\
# Fetch the library, and the data that this page reads.
!git clone -q --depth 1 -b {branch} {address} positional-encoding
%pip install -q anywidget
%cd -q positional-encoding/{folder}
import sys; sys.path.append("{root}")"""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("Name the folder in which to write the pages: python website/colab.py FOLDER")
    if not (address := repository_url()):
        sys.exit("This checkout has no repository on GitHub, from which Colab could open a page.")
    write(Path(sys.argv[1]), address, branch())


def write(target: Path, address: str, name: str) -> None:
    """Write every page for Colab, with the same path as in the repository."""
    for page in sorted((ROOT / "book").rglob("*.ipynb")):
        path = page.relative_to(ROOT)
        if any(part.startswith(".") for part in path.parts):
            continue
        notebook = json.loads(page.read_text(encoding="utf-8"))
        notebook["cells"].insert(0, fetching_cell(path.parent, address, name))
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(json.dumps(notebook, ensure_ascii=False, indent=1), encoding="utf-8")


def fetching_cell(folder: Path, address: str, name: str) -> dict[str, Any]:
    """The cell that fetches a branch of a repository for a page in this folder of it."""
    root = "/".join(".." for _ in folder.parts)
    source = FETCH.format(address=address, branch=name, folder=folder.as_posix(), root=root)
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "fetch",
        "metadata": {},
        "outputs": [],
        "source": source,
    }


if __name__ == "__main__":
    main()
