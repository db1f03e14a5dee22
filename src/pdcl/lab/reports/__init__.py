"""Runs made visible: the report on many of them and the live page. All of it is read from the files of a run."""
