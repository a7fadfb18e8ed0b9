"""Which browser the tests take, and how set-up brings one where there is none."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Error

from website import browser

OWN, CHROME = "Playwright's own", "channel chrome"
IN_ORDER = [OWN, *browser.CHROMIUM, CHROME]
DOWNLOAD, APT = "Playwright's download", "apt-get"


class Machine:
    """A machine in the place of this one: what starts on it, and what was tried in which order."""

    def __init__(self, starts: set[str], can_bring: set[str]) -> None:
        self.starts, self.can_bring = starts, can_bring
        self.tried: list[str] = []
        self.unknown: set[str] = set()  # the packages that apt-get does not have
        self.chromium = self  # the part of Playwright that launches

    def launch(self, args: list[str], **which: str) -> str:
        assert browser.NO_OTHER_HOST in args
        name = OWN
        if "executable_path" in which:
            name = which["executable_path"]
        elif "channel" in which:
            name = f"channel {which['channel']}"
        self.tried.append(name)
        if name not in self.starts:
            raise Error(f"{name} does not start")
        return name

    def run(self, command: list[str], **_: Any) -> SimpleNamespace:
        way = APT if command[0] == "apt-get" else DOWNLOAD
        self.tried.append(way)
        brings = way in self.can_bring and command[-1] not in self.unknown
        if brings and "update" not in command:
            self.starts.add({DOWNLOAD: OWN, APT: command[-1]}[way])
        if brings:
            return SimpleNamespace(returncode=0, stdout="", stderr="")
        return SimpleNamespace(returncode=1, stdout="", stderr=f"{way} has no network")


@contextmanager
def machine(
    monkeypatch: pytest.MonkeyPatch, starts: set[str], can_bring: set[str], root: bool = True
) -> Iterator[Machine]:
    stand_in = Machine(starts, can_bring)

    @contextmanager
    def playwright() -> Iterator[Machine]:
        yield stand_in

    monkeypatch.setattr(browser, "sync_playwright", playwright)
    monkeypatch.setattr(shutil, "which", lambda name: name)  # every name is on the path
    monkeypatch.setattr(subprocess, "run", stand_in.run)
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    yield stand_in


@pytest.mark.parametrize("there", IN_ORDER)
def test_set_up_takes_the_first_browser_that_starts_and_brings_none(
    there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that has a browser's name, but does not start, is passed over."""
    with machine(monkeypatch, {there, CHROME}, set()) as seen:
        browser.main()
    assert seen.tried == IN_ORDER[: IN_ORDER.index(there) + 1]


@pytest.mark.parametrize(
    ("can_bring", "ways"),
    [({DOWNLOAD, APT}, [DOWNLOAD]), ({APT}, [DOWNLOAD, APT, APT])],
    ids=["downloads", "no download"],
)
def test_where_none_starts_playwright_downloads_one_and_else_apt_get_installs_one(
    can_bring: set[str], ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine(monkeypatch, set(), can_bring) as seen:
        browser.main()
    assert [way for way in seen.tried if way in (DOWNLOAD, APT)] == ways
    assert seen.tried[-1] in seen.starts


@pytest.mark.parametrize(
    ("unknown", "brought"),
    [(set(), "chromium-headless-shell"), ({"chromium-headless-shell"}, "chromium")],
    ids=["Debian", "a system without the small one"],
)
def test_apt_get_installs_the_small_chromium_or_where_there_is_none_the_whole(
    unknown: set[str], brought: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine(monkeypatch, set(), {APT}) as seen:
        seen.unknown = unknown
        browser.main()
    assert seen.starts == {brought}


@pytest.mark.parametrize(
    ("root", "ways"),
    [(True, [DOWNLOAD, APT, APT, APT]), (False, [DOWNLOAD])],
    ids=["root", "a user"],
)
def test_where_none_can_be_brought_the_end_names_remedies(
    root: bool,
    ways: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """apt-get is asked where there is root alone. What each browser and the download say is shown,
    since a browser that lacks a library of the system is not mended by another download."""
    with machine(monkeypatch, set(), set(), root) as seen, pytest.raises(SystemExit) as ended:
        browser.main()
    assert [way for way in seen.tried if way in (DOWNLOAD, APT)] == ways
    for remedy in ("playwright install chromium", "playwright install-deps", "apt-get install"):
        assert remedy in str(ended.value)
    for name in IN_ORDER:
        assert f"{name} does not start" in str(ended.value)
    assert f"{DOWNLOAD} has no network" in capsys.readouterr().out


def test_where_playwright_does_not_start_its_reason_and_a_remedy_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a small image of Debian, which lacks a library that Playwright's own program needs."""

    @contextmanager
    def playwright() -> Iterator[Machine]:
        raise Exception("Connection closed while reading from the driver")  # as Playwright does
        yield

    monkeypatch.setattr(browser, "sync_playwright", playwright)
    with pytest.raises(SystemExit, match="Connection closed") as ended:
        browser.main()
    assert "apt-get install libatomic1" in str(ended.value)


def test_a_test_installs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with machine(monkeypatch, set(), {DOWNLOAD, APT}) as seen, pytest.raises(SystemExit):
        browser.start_browser(seen)  # type: ignore[arg-type]  # a stand-in
    assert not {DOWNLOAD, APT} & set(seen.tried)
