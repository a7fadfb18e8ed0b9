"""`make binder`: what it says where a step of the trial fails."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from website import binder
from website.page_measures import is_live


@pytest.mark.parametrize(
    ("step", "said"), [("venv", "was not made; Python"), ("install", "was not installed; pip")]
)
def test_where_a_step_of_the_installation_fails_one_sentence_says_so(
    step: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "binder").mkdir()
    (tmp_path / "binder" / "runtime.txt").write_text("python-3.11", encoding="utf-8")

    def fail(command: list[str], *, check: bool = False, **options: Any) -> Any:
        assert not check, "it would end in a trace"
        return subprocess.CompletedProcess(command, int(step in command))

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(SystemExit, match=f"{said} says why above"):
        binder.install(tmp_path, tmp_path / "environment")


def test_a_server_that_never_answers_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text("still starting", encoding="utf-8")
    monkeypatch.setattr(binder, "MOST_SECONDS_TO_START", 0.5, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = free.getsockname()
    command = [sys.executable, "-c", "import time; time.sleep(5)"]
    with subprocess.Popen(command) as silent:
        with pytest.raises(SystemExit, match=r"did not start within 0.5 s:\nstill starting"):
            binder.wait_for(place, silent, log)
        assert silent.poll() is None
        silent.kill()


def test_a_cell_below_the_last_live_figure_follows_it() -> None:
    """The trial moves that figure and looks at that cell."""
    cells = nbformat.read(binder.ROOT / binder.CHAPTER, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    last = max(place for place, cell in enumerate(code) if is_live(cell))
    assert "in-a-kernel" in code[last + 1].metadata["tags"]
    assert "display_id=True" in code[last + 1].source
