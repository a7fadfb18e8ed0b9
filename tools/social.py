"""Draw the picture that a shared link shows: book/_assets/social.png, 1200 by 630 pixels."""

from pathlib import Path

from cover import draw

from pe_lib.book import plots

PICTURE = Path(__file__).resolve().parent.parent / "book" / "_assets" / "social.png"


def main() -> None:
    plots.use_style()
    figure = draw()
    figure.set_size_inches(12, 6.3)
    figure.suptitle("Positional Encoding", x=0.03, ha="left", fontsize=30, fontweight="bold")
    figure.savefig(PICTURE, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
