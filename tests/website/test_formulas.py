"""Where a displayed formula may be broken, and what it is set as."""

import itertools

import pytest

from website.extensions.formulas import FORMULAS, clauses_of, set_formula


@pytest.mark.parametrize(
    ("tex", "clauses"),
    [
        ("a=b", [["a", "{}=b"]]),
        ("a=b=c", [["a", "{}=b", "{}=c"]]),
        (r"a\le b,\qquad c=1", [["a", r"{}\le b,"], ["{} c", "{}=1"]]),
        # Brackets of every sort, bars and rows of a matrix keep together what they hold.
        (r"f(a=b)", [["f(a=b)"]]),
        (r"\left[a=b\right)", [[r"\left[a=b\right)"]]),
        (r"\left.a=b\right|_0=c", [[r"\left.a=b\right|_0", "{}=c"]]),
        (r"\lVert a=b\rVert", [[r"\lVert a=b\rVert"]]),
        (r"\|a=b\|=|c=d|", [[r"\|a=b\|", "{}=|c=d|"]]),
        (r"\{a=b\}=x_{i=1}", [[r"\{a=b\}", "{}=x_{i=1}"]]),
        (
            r"M=\begin{bmatrix}a&b\\c&d\end{bmatrix}",
            [["M", r"{}=\begin{bmatrix}a&b\\c&d\end{bmatrix}"]],
        ),
        # One piece: several rows, which are aligned, and a relation with nothing before it.
        (r"a&=b\\&=c", [[r"a&=b\\&=c"]]),
        (r"\begin{aligned}a&=b\\&=c\end{aligned}", [[r"\begin{aligned}a&=b\\&=c\end{aligned}"]]),
        ("=a", [["=a"]]),
        # A plus alone breaks what would be long.
        ("a=b+c", [["a", "{}=b+c"]]),
        (
            rf"a=\text{{{'word' * 8}}}+\text{{{'word' * 8}}}",
            [["a", rf"{{}}=\text{{{'word' * 8}}}", rf"{{}}+\text{{{'word' * 8}}}"]],
        ),
    ],
)
def test_a_formula_is_broken_outside_of_its_brackets(tex: str, clauses: list[list[str]]) -> None:
    assert clauses_of(tex) == clauses
    for piece in itertools.chain(*clauses) if clauses != [[tex]] else ():
        assert "data-mjx-error" not in FORMULAS[set_formula(rf"\displaystyle {piece}", False)]
