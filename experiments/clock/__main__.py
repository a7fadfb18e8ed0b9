"""`python -m experiments.clock`: does training build a clock into a table that starts at random?"""

from experiments.clock.controls import store_controls
from experiments.clock.run import RESULTS, SHORT, run, series
from experiments.common import command

if __name__ == "__main__":
    store_controls()
    command(
        __doc__ or "",
        series(),
        run,
        RESULTS,
        SHORT,
        seconds_a_step={48: 0.07, 128: 0.18, 256: 0.33},
    )
