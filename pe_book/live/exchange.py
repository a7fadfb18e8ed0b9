"""A sentence whose words and numbers can be exchanged, and where one trained head looks."""

from pe_book.live.figure import LiveFigure, choice, text

ORDER = r"(?!.*(.).*\1)[0-7]{8}"  # eight digits, none of them twice


class Exchange(LiveFigure):
    kind = "exchange"
    tags = text("01234567", ORDER)
    words = text("01234567", ORDER)
    given = choice("sentence", "same", "none")


def exchange(
    tags: str = "01234567",
    words: str = "01234567",
    *,
    given: str = "sentence",
    question: str = "",
) -> Exchange:
    """Where the third head of MiniLM's first layer looks in “the dog bit the man .”.

    The browser computes the weights from rows and matrices of the model (``data/exchange.js``). Its
    traits are ``tags``, the number at each place; ``words``, the word at each place, as its number
    in the sentence; and ``given``: ``"sentence"``, ``"same"`` (one word eight times) or ``"none"``
    (the mean of all rows of the table in place of each number's row).

    Examples
    --------
    >>> exchange("01534267")
    Live figure: exchange(tags=01534267, words=01234567, given=sentence)
    """
    return Exchange(tags=tags, words=words, given=given, question=question)
