"""A study on screen: a failed run says why when it fails, not only at the end."""

import io

from pdcl.lab.cli.study_display import StudyDisplay
from pdcl.lab.studies import Ended, load
from pdcl.lab.studies.engine import Job
from pdcl.screen import Screen


def test_a_failed_run_says_its_cause_at_once(tmp_path):
    display = StudyDisplay(tmp_path, 1, Screen(file=io.StringIO(), width=200))
    spec = load("demo").runs()[0]
    display.listener(Ended(Job(spec, str(tmp_path)), 1.0, cause="Diverged: the loss is nan at step 7"))
    first, cause = display.console.file.getvalue().splitlines()
    assert "failed" in first
    assert cause.strip() == "Diverged: the loss is nan at step 7"
