"""Which encodings still work on texts longer than those of the training? See `run`."""

from experiments.common import TEST_STREAM, read_series
from experiments.length_transfer.model import (
    ENCODINGS,
    HEADS,
    LENGTH,
    WAYS,
    WAYS_NAMED,
    code_values,
    stretched,
    turned,
)
from experiments.length_transfer.run import (
    ENCODINGS_OF_LARGE,
    LENGTHS,
    MEASURED,
    PROBES,
    RESULTS,
    SIZES,
    STEPS,
    TASKS,
    VOCABULARY,
    Size,
    accuracy,
    batches,
    chance,
    encoder,
    named,
    parameters,
    right,
    sources,
    train,
)
from experiments.stored import Run

__all__ = [
    "ENCODINGS",
    "ENCODINGS_OF_LARGE",
    "HEADS",
    "LENGTH",
    "LENGTHS",
    "MEASURED",
    "PROBES",
    "RESULTS",
    "SIZES",
    "STEPS",
    "TASKS",
    "TEST_STREAM",
    "VOCABULARY",
    "WAYS",
    "WAYS_NAMED",
    "Size",
    "accuracy",
    "batches",
    "chance",
    "code_values",
    "encoder",
    "named",
    "parameters",
    "right",
    "sources",
    "stored",
    "stretched",
    "train",
    "turned",
]


def stored(series: str = "all encodings") -> Run:
    """A stored series: how it was made, and its "runs".

    The series are "all encodings", "random table", "step by step", "named" and "controls".
    """
    return read_series(RESULTS, series)
