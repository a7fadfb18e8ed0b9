"""`python -m experiments.chains`: which texts leave the step of a clock in a table?"""

from experiments.chains.run import RESULTS, SHORT, run, series
from experiments.common import command

if __name__ == "__main__":
    command(__doc__ or "", series(), run, RESULTS, SHORT, seconds_a_step={64: 0.07})
