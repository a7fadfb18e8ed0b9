"""Read the tables of positions of five published models, and which rows look as new ones do."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class PublishedTable(NamedTuple):
    """The rows of a table, one for each place, and where it comes from."""

    rows: Array  # (places, width), float64
    provenance: dict[str, Any]  # the model, what it was trained on, the package, the licence

    @property
    def as_short_as_new(self) -> NDArray[np.bool_]:
        """Which rows cannot be told from new ones by their length.

        So it is with rows that no text of the training has reached, and with some that few have.
        A row of d entries with the standard deviation σ has the length σ√d, within 1/√(2d) of it,
        and hardly one in ten thousand is longer by four times that.
        """
        width = self.rows.shape[1]
        longest = self.provenance["start"] * np.sqrt(width) * (1 + 4 / np.sqrt(2 * width))
        return np.asarray(np.linalg.norm(self.rows, axis=1) < longest)

    def pieces(self, length: int, starts: tuple[int, ...] = (1, 60, 200)) -> dict[int, Array]:
        """So many rows from each of these places on, where they end before the first short row.

        Row 0 belongs to a sign for the beginning of a text, so the first piece begins at 1.
        """
        end = int(np.append(np.flatnonzero(self.as_short_as_new), len(self.rows))[0])
        return {a: self.rows[a : a + length] for a in starts if a + length <= end}


def load(folder: str | Path) -> dict[str, PublishedTable]:
    """All tables of book/data/published_tables, by name."""
    provenance = json.loads((Path(folder) / "provenance.json").read_text(encoding="utf-8"))
    with np.load(Path(folder) / "extract.npz") as stored:
        return {
            name: PublishedTable(stored[name].astype(np.float64), entry)
            for name, entry in provenance["tables"].items()
        }
