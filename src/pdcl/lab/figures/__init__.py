"""Plots for a paper, from the files of runs: one style, three formats."""
