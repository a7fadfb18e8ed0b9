"""`python -m experiments.beyond_length --downloads FOLDER` makes the runs that are missing."""

from experiments.beyond_length.run import main

main()
