"""Prices of a run, with their doubts; what-if from the very same starting point; what tolerances can be met."""

import copy

import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.lab.prices import is_moving
from pdcl.lab.studies.attainable import Level, Reach
from pdcl.lab.studies.whatif import Solved, carry_out, curve, looks, solve, whatif
from pdcl.lab.studies.whatif_figure import draw
from pdcl.learning.schedule import Schedule

OPTIONS = {"memory": 60, "epochs": 1, "batch": 20, "dual_steps": 20, "seed": 0}
PRICED = {**OPTIONS, "tolerance": "1.1x", "base": 0.0, "drift": 0.0, "guard": 0, "witness": 0}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return pdcl.run("synthetic", "pdcl", out=tmp_path_factory.mktemp("runs"), **PRICED)


def test_a_record_a_result_and_a_learner_tell_the_same_prices(result):
    stream = pdcl.stream("synthetic")
    told = [pdcl.prices(run, stream) for run in (result, result.path, result.learner) if run is not result.path]
    told.append(pdcl.prices(result.path))
    for found in told:
        assert [price.dual for price in found] == pytest.approx(result.duals[-1][:-1])
        assert [price.samples for price in found] == result.partitions[-2]
        assert found.current == stream.tasks[-1].name
    assert told[0].rows == told[-1].rows


def test_a_price_says_what_loosening_may_win(result):
    first = pdcl.prices(result)[0]
    assert first.wins == pytest.approx(0.01 * first.dual)
    assert f"may win at most about {first.wins:.2g} on the current task" in str(first)


def test_a_method_without_duals_has_no_prices():
    learner = pdcl.run("synthetic", "finetune", epochs=1, batch=50).learner
    with pytest.raises(UsageError, match="no prices"):
        pdcl.prices(learner)


@pytest.mark.parametrize("options", [{"tolerance": "5%"}, {"drift": 0.3}])
def test_a_dual_is_a_mere_weight_where_another_thing_is_differentiated(options):
    """Measured on digits: with drift 0.3 λ was 0.26 while the slope of P was 1.7."""
    learner = pdcl.run("synthetic", "pdcl", **{**OPTIONS, "tolerance": "1.1x", "drift": 0.0, **options}).learner
    assert "a weight, not a price" in str(pdcl.prices(learner))


@pytest.mark.parametrize(
    ("path", "moving"),
    [([1.0] * 3, None), ([0.0] * 20, False), ([1.0] * 20, False), ([0.1 * i for i in range(20)], True)],
)
def test_a_dual_moves_or_has_settled(path, moving):
    assert is_moving(path) is moving


def test_what_if_starts_where_the_run_stood(result):
    """At γ = 0 the last task is learned again to the bit, in another process or in this one."""
    seen = []

    def spy(job):
        seen.append(job)
        return Solved(0.0, 1.0, 0.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pdcl.lab.studies.whatif.carry_out", spy)
        whatif(result.path, 1, [0.1], workers=1)
    job = next(job for job in seen if job.change == 0)
    from pdcl.running.rebuild import described
    from pdcl.storage.serialize import from_parts

    learner, stream, schedule = described(result.path)
    learner.load_state_dict(from_parts(job.start)["learner"])
    again = copy.deepcopy(learner)
    solve(again, stream, schedule, job)
    assert again.final_duals() == result.duals[-1]
    assert carry_out(job) == solve(learner, stream, Schedule(schedule.epochs, schedule.batch), job)


@pytest.mark.parametrize(
    ("steps", "looked"), [(1, [0]), (4, [2, 3]), (60, [*range(30, 60)]), (240, [*range(123, 240, 4)])]
)
def test_what_if_looks_at_all_data_in_the_last_half_and_no_more_often_than_it_must(steps, looked):
    assert [step for step in range(steps) if looks(step, steps)] == [*looked]


def test_points_are_held_to_the_line_repeat_by_repeat(tmp_path):
    table = {
        0.0: [Solved(1.0, 2.0, 0.1), Solved(1.2, 2.2, 0.1)],
        0.1: [Solved(0.9, 1.5, 0.2), Solved(1.1, 1.5, 0.2)],
        -0.1: [Solved(1.1, 3.0, 0.0), Solved(1.3, 3.0, 0.0)],
    }
    found = curve(0, "a", 0.1, table)
    assert found.dual == pytest.approx(2.1)
    assert [point.gain for point in found.points] == pytest.approx([0.1, -0.1])
    assert [point.line for point in found.points] == pytest.approx([0.21, -0.21])
    assert [point.above for point in found.points] == [False, True]
    assert found.share_above == 0.5
    assert not found.held
    assert draw(found, tmp_path / "figure.png").stat().st_size > 1000


def test_a_task_that_is_not_past_is_refused(result):
    with pytest.raises(UsageError, match="no past task"):
        whatif(result.path, 4)


def test_whatif_and_tolerance_answer_on_the_command_line(result, tmp_path, capsys):
    figure = tmp_path / "figure.png"
    words = ["whatif", str(result.path), "--task", "1", "--tolerance", "0.5", "--workers", "1", "--out", str(figure)]
    assert main(words) == 0
    assert "of the points lie above the price line" in capsys.readouterr().out
    assert figure.exists()
    assert main(["tolerance", "synthetic", "--epochs", "1", "--tolerance", "0.0001"]) == 0
    out = capsys.readouterr().out
    assert "infeasible" in out
    assert "next: pdcl run synthetic pdcl --tolerance" in out


def test_infeasible_tolerances_are_told_apart():
    reach = Reach(0, "a", Level(0.02, 0.03, 0.01), Level(0.05, 0.06, 0.04))
    assert "even alone" in str(reach.doubt(0.01))
    assert "together with all others" in str(reach.doubt(0.03))
    assert reach.doubt(0.06) is None
    assert "4.00 %" in str(reach.doubt("2%"))
    assert reach.proposal == pytest.approx(0.055)
