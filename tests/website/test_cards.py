"""The cards: each page that people share has a picture of its own, drawn from what it says now."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from PIL import Image

from website import cards, cover
from website.cards import Card, card_of
from website.contents import chapters_in
from website.extensions.data_pages import JINJA
from website.extensions.finding import MARK

DRAW = ".venv/bin/python website/cover.py"
NOT_CHAPTERS = ("book/index", "book/tour", "book/folklore", "book/settled", "book/inspector")
MOST_BYTES = 65_000
CARDS = [pytest.param(card, id=name) for name, card in cards.cards().items()]


def head_of(page: str) -> BeautifulSoup:
    """What the head of a page says to those who show a link to it."""
    known = {"own": "A title", "docstitle": "A book", "pageurl": f"https://a.example/{page}.html"}
    template = JINJA.get_template("card.html")
    head = template.render(**known, site_address="https://a.example/", card=card_of(page))
    return BeautifulSoup(head, "html.parser")


def said(head: BeautifulSoup, name: str) -> str:
    (found,) = head.select(f'meta[property="{name}"]')
    return str(found["content"])


def test_every_chapter_and_what_leads_into_the_book_has_a_card() -> None:
    pages = (*NOT_CHAPTERS, *chapters_in())
    assert {f"book/{name}" for name in cards.cards()} == set(pages)
    assert {card_of(page).name for page in pages} == set(cards.cards())


@pytest.mark.parametrize("card", CARDS)
def test_a_page_names_its_picture_and_says_what_stands_in_it(card: Card) -> None:
    head = head_of(f"book/{card.name}")
    assert said(head, "og:image") == f"https://a.example/_static/cards/{card.name}.png"
    assert card.says in said(head, "og:image:alt")
    assert card.grade in said(head, "og:image:alt")
    size = [said(head, f"og:image:{side}") for side in ("width", "height")]
    assert size == ["1200", "630"]
    assert head.select('meta[name="twitter:card"]')[0]["content"] == "summary_large_image"


@pytest.mark.parametrize("card", CARDS)
def test_a_picture_is_one_of_its_size(card: Card) -> None:
    assert card.path.stat().st_size <= MOST_BYTES
    with Image.open(card.path) as picture:
        assert (picture.format, picture.size) == ("PNG", (1200, 630))


@pytest.mark.parametrize("card", CARDS)
def test_a_picture_is_drawn_from_what_the_book_says_now(card: Card) -> None:
    """From its sentence, the data of its drawing, and the finding of its page."""
    advice = f"Read `{card.name}` in {cards.SENTENCES.name}: is it still true? Then type: {DRAW}"
    assert cover.stored_checksum(card) == cover.checksum(card), advice


@pytest.mark.parametrize("card", CARDS)
def test_a_sentence_is_short_and_of_the_grade_of_its_page(card: Card) -> None:
    assert len(card.says) <= 64
    assert card.says.count(".") == 1 + card.says.count("config.json") or card.name == cards.GENERAL
    if Path(cards.BOOK / f"{card.name}.ipynb").exists():
        for mark in card.grade.split(" · "):
            assert MARK.fullmatch(mark)
            assert mark in cover.findings(card)


def test_a_changed_finding_changes_the_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    card = card_of("book/rope")
    before = cover.checksum(card)
    monkeypatch.setattr(cover, "findings", lambda card: "**Not so.** *proved*")
    assert cover.checksum(card) != before


def test_the_same_finding_on_other_lines_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for text in ("**It is\nso.** *proved*", "**It is so.**\n*proved*"):
        description = f"---\ndescription: {text}\n---\n# A title\n"
        (tmp_path / "index.md").write_text(description, encoding="utf-8")
        monkeypatch.setattr(cover, "BOOK", tmp_path)
        found.append(cover.findings(card_of("book/index")))
    assert found[0] == found[1]


@pytest.mark.parametrize("page", ["book/library", "index", "book/checks/rope", "search"])
def test_a_page_without_a_card_has_that_of_the_book(page: str) -> None:
    assert card_of(page).name == cards.GENERAL
    assert said(head_of(page), "og:image").endswith("/cards/index.png")


def test_where_a_picture_is_missing_the_card_is_that_of_the_book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "FOLDER", tmp_path)
    assert card_of("book/rope").name == cards.GENERAL


def test_counts_are_those_of_the_pages() -> None:
    assert "34" in card_of("book/folklore").says
    assert cards.statements() == {"proved": 14, "measured": 14, "open": 11}


def test_a_picture_keeps_the_colours_of_the_logo() -> None:
    for name, card in cards.cards().items():
        with Image.open(card.path) as picture:
            palette = picture.getpalette() or []
        colours = {tuple(palette[k : k + 3]) for k in range(0, len(palette), 3)}
        assert {tuple(hue) for hue in cover.shades()[-len(cover.HUES) :].tolist()} <= colours, name
