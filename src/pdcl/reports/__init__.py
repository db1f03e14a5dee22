"""Runs made visible: the report, the figures and the live page. All of it is read from the files of a run."""
