"""The experiments for which models are trained: see README.md."""
