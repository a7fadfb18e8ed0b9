"""What is mended in the pages of the site, by small examples."""

import pytest
from bs4 import BeautifulSoup
from mend_pages import keep_together

X = '<span class="math">x</span>'


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        (f"It is\n{X}, or", f'It is\n<span class="kept">{X},</span> or'),
        (f"It ({X}) is", f'It <span class="kept">({X})</span> is'),
        (f"the top-{X}\nwords", f'the <span class="kept">top-{X}</span>\nwords'),
        (f"{X}-dimensional.", f'<span class="kept">{X}-dimensional.</span>'),
        (f"{X}, {X}.", f'<span class="kept">{X},</span> <span class="kept">{X}.</span>'),
        (f"It is {X} here", f"It is {X} here"),
        (f"<em>a</em>{X}<em>b</em>", f"<em>a</em>{X}<em>b</em>"),
    ],
)
def test_a_formula_keeps_what_touches_it_and_nothing_else(written: str, mended: str) -> None:
    page = BeautifulSoup(f'<p class="bd-article">{written}</p>', "html.parser")
    keep_together(page)
    assert str(page) == f'<p class="bd-article">{mended}</p>'
