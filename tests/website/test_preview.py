"""`make preview`: a page is built again when its source changes, and the browser shows it again."""

import os
import runpy
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from website import preview
from website.build import ROOT, NotBuilt, NotExecuted


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done in the place of a build."""
    done: list[str] = []
    monkeypatch.setattr(preview, "build", lambda **_: done.append("built"))
    monkeypatch.setattr(os, "execv", lambda program, command: done.append("started again"))
    return done


@pytest.mark.parametrize(
    ("changed", "done"),
    [
        (["book/glossary.md"], "built"),
        (["pe_book/live/kit.js", "website/assets/book.css"], "built"),
        (["pe_book/live/figure.py", "book/glossary.md"], "started again"),  # it has read the code
    ],
)
def test_a_change_is_built(changed: list[str], done: str, built: list[str]) -> None:
    preview.build_again({ROOT / name for name in changed})
    assert built[0] == done


def test_a_build_that_fails_is_not_called_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: Any) -> None:
        raise NotBuilt("not built")

    monkeypatch.setattr(preview, "build", fail)
    before = preview.Handler.last_build
    preview.build_again({ROOT / "book" / "glossary.md"})
    assert "Built in" not in capsys.readouterr().out
    assert preview.Handler.last_build == before


@pytest.mark.parametrize(
    ("file", "code"),
    [("pe_lib/half.py", "def half("), ("website/preview.py", "import no_such_module")],
    ids=["half-written", "an import that fails"],
)
def test_code_that_cannot_run_does_not_end_the_preview(
    file: str,
    code: str,
    built: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It starts itself again, and would not come back."""
    monkeypatch.setattr(preview, "ROOT", tmp_path)
    files = {"website/__init__.py": "", "website/preview.py": "", file: code}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    preview.build_again({tmp_path / file})
    said = capfd.readouterr()
    assert built == []
    assert "Error" in said.err
    (tmp_path / file).write_text("", encoding="utf-8")
    preview.build_again({tmp_path / file})
    assert built[0] == "started again"


@pytest.mark.parametrize(
    "wrong", [NotExecuted("Not executed: book/a.ipynb."), NotBuilt("Not built.")]
)
def test_a_preview_that_starts_with_a_failure_waits_for_the_next_change(
    wrong: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed: list[set[Path]] = []
    times = [{ROOT / "a.md": 1.0}, {ROOT / "a.md": 2.0}]

    def fail(*_: Any) -> None:
        raise wrong

    def note(paths: set[Path]) -> None:
        changed.append(paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(preview, "ADDRESS", ("127.0.0.1", 0))
    monkeypatch.setattr(preview, "times_of_changes", lambda: times.pop(0))
    monkeypatch.setattr(preview, "execute", fail)
    monkeypatch.setattr(preview, "build_again", note)
    preview.main()
    assert changed == [{ROOT / "a.md"}]
    assert str(wrong) in capsys.readouterr().out


@pytest.mark.parametrize("name", ["experiments/rank/run.py", "experiments/rank/results.jsonl"])
def test_what_pages_read_of_the_experiments_is_watched_and_runs_them_again(
    name: str, built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "ROOT", tmp_path)
    monkeypatch.setattr(preview, "can_start_again", lambda changed: True)
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("0", encoding="utf-8")
    assert set(preview.times_of_changes()) == {path}
    preview.build_again({path})
    assert built[0] == "started again"


def test_a_source_that_is_saved_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "ROOT", tmp_path)
    page = tmp_path / "book" / "checks" / "01.ipynb"
    page.parent.mkdir(parents=True)
    page.write_text("one", encoding="utf-8")
    before = preview.times_of_changes()
    os.utime(page, (1, 1))
    after = preview.times_of_changes()
    assert {path for path, _ in before.items() ^ after.items()} == {page}


def test_a_page_that_is_shown_is_loaded_again_after_a_build(
    tmp_path: Path, built: list[str]
) -> None:
    (tmp_path / "page.html").write_text("<p>A page</p>", encoding="utf-8")
    (tmp_path / "style.css").write_text("p {}", encoding="utf-8")
    handler = partial(preview.Handler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def get(name: str) -> bytes:
            with urlopen(f"http://127.0.0.1:{server.server_port}/{name}") as answer:
                content: bytes = answer.read()
                return content

        assert get("page.html") == b"<p>A page</p>" + preview.RELOAD
        assert get("style.css") == b"p {}"
        before = get("last-build")
        assert get("last-build") == before
        preview.build_again({ROOT / "book" / "glossary.md"})
        assert get("last-build") != before
        server.shutdown()


def test_a_preview_that_starts_itself_again_gives_other_numbers() -> None:
    """It does so where Python code has changed, and the page has to be loaded again after that."""
    starts = [runpy.run_path(preview.__file__, run_name="started again") for _ in range(3)]
    assert len({start["Handler"].last_build for start in starts}) == len(starts)


def test_a_second_preview_says_so_before_it_builds(
    built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "execute", lambda notebooks: built.append("executed"))
    with ThreadingHTTPServer(("127.0.0.1", 0), preview.Handler) as first:
        monkeypatch.setattr(preview, "ADDRESS", first.server_address)
        with pytest.raises(SystemExit, match=f"uses port {first.server_port}.*another window"):
            preview.serve()
    assert built == []
