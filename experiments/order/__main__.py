"""`python -m experiments.order`: what decides when a model starts to use the order of words?"""

from experiments.common import command
from experiments.order.run import RESULTS, SHORT, run, series

if __name__ == "__main__":
    command(__doc__ or "", series(), run, RESULTS, SHORT, seconds_a_step={48: 0.07})
