"""The page of the paper: claims follow the runs that they are about, and say so where there are none."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pdcl.errors import UsageError
from pdcl.lab.cli import paper as command_line
from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.paper.claims import CLAIMS
from pdcl.lab.paper.gallery import draw_answers
from pdcl.lab.paper.page import equal_parts, of_paper, write_page
from pdcl.lab.paper.price_figure import price_panels
from pdcl.lab.paper.prices import SETTLED
from pdcl.lab.paper.reasons import reasons
from pdcl.lab.paper.runs import (
    HELD,
    NOT_HELD,
    NOT_RUN,
    UNDECIDED,
    Finding,
    Runs,
    correlated,
    more,
    no_less,
    no_more,
    within,
)
from pdcl.lab.paper.sizes import by_size
from pdcl.lab.paper.untested import UNTESTED
from pdcl.lab.studies import load
from pdcl.lab.studies.packing import unpack
from pdcl.metrics import interval
from pdcl.records import checksum, scan

SEEDS = range(4)


@pytest.fixture
def study(tmp_path, fake_run):
    """`study(method, accuracies, **config)`: runs on mnist at memory 500 whose options all come from the preset."""

    def make(method: str, accuracy: float, spread: float = 0.001, **config: Any) -> list[Any]:
        full = {"stream": "mnist", "preset": "tamed", "memory": 500, "method": method, "label": method, **config}
        return [
            fake_run(tmp_path / "runs", accuracy + spread * (-1) ** seed * (1 + seed), seed=seed, **full)
            for seed in SEEDS
        ]

    make.directory = tmp_path / "runs"
    return make


def finding(says: str, directory) -> Finding:
    claim = next(each for each in CLAIMS if each.says == says)
    return claim.judge(Runs(of_paper(scan(directory), ("tamed",))))


def test_a_claim_holds_fails_or_stays_undecided_as_the_paired_interval_says(study) -> None:
    study("er", 0.80)
    study("er-ring", 0.85)
    study("pdcl0", 0.82)
    study("pdcl", 0.8201, spread=0.03)
    over_er = finding("Dual weights improve on fixed ones: pdcl0 over er, accuracy, mnist", study.directory)
    assert over_er.verdict == HELD
    assert over_er.number == pytest.approx(2.0)
    assert over_er.n == 4
    ring = "Dual weights improve on fixed ones: pdcl0 over er-ring, accuracy, mnist"
    assert finding(ring, study.directory).verdict == NOT_HELD
    by_dual = "Partition by dual improves on a uniform one: pdcl over pdcl0, accuracy, mnist"
    assert finding(by_dual, study.directory).verdict == UNDECIDED
    speech = "Dual weights improve on fixed ones: pdcl0 over er, accuracy, speech"
    assert finding(speech, study.directory).verdict == NOT_RUN


def test_all_four_benchmarks_have_claims_and_no_claim_is_about_runs_that_no_part_has(study) -> None:
    study("er", 0.20, stream="tiny_imagenet")
    study("pdcl0", 0.15, stream="tiny_imagenet")
    says = "Dual weights improve on fixed ones: pdcl0 over er, accuracy, tiny_imagenet"
    assert finding(says, study.directory).verdict == NOT_HELD
    tiny = [claim for claim in CLAIMS if claim.says.endswith("tiny_imagenet")]
    assert {claim.part for claim in tiny} == {"tiny"}
    named = {word for claim in tiny for word in claim.says.replace(",", "").split()}
    paper = load("paper")
    assert named & {*paper.parts["mnist"].methods} <= {*paper.parts["tiny"].methods}


def test_few_settings_and_few_seeds_leave_claims_about_all_settings_undecided(study, tmp_path, fake_run) -> None:
    every, er = (
        "High accuracy in almost all settings: pdcl above er beyond its interval",
        "In some settings no method is clearly better than er",
    )
    study("er", 0.80)
    study("pdcl", 0.802, spread=0.004)
    assert finding(every, study.directory).verdict == finding(er, study.directory).verdict == UNDECIDED
    for memory in (200, 1000, 2000, 5000):
        study("er", 0.80, memory=memory)
        study("pdcl", 0.82, memory=memory)
    found = finding(every, study.directory)
    assert (found.verdict, found.number, found.unit) == (HELD, 4, "of 5 settings, 0 the other way")
    setting = {"stream": "mnist", "preset": "tamed", "memory": 500, "seed": 4}
    for method, accuracy in (("er", 0.80), ("pdcl", 0.79)):
        fake_run(study.directory, accuracy, method=method, label=method, **setting)
    assert finding(er, study.directory).verdict == HELD


def test_a_higher_mean_without_an_interval_above_0_is_no_setting_won(study) -> None:
    for memory in (200, 500, 1000):
        study("er", 0.80, memory=memory)
        study("pdcl", 0.802, spread=0.03, memory=memory)
    found = finding("High accuracy in almost all settings: pdcl above er beyond its interval", study.directory)
    assert (found.verdict, found.number) == (NOT_HELD, 0)


def test_almost_all_settings_are_counted_for_every_baseline_by_itself(study) -> None:
    for memory in (200, 500, 1000):
        for method, accuracy in (("er", 0.80), ("xder", 0.90), ("pdcl", 0.85)):
            study(method, accuracy, memory=memory)
    says = "High accuracy in almost all settings: pdcl above {} beyond its interval"
    verdicts = [finding(says.format(label), study.directory).verdict for label in ("er", "gss", "xder", "agem")]
    assert verdicts == [HELD, NOT_RUN, NOT_HELD, NOT_RUN]
    claim = next(each for each in CLAIMS if each.says == says.format("xder"))
    assert {"mnist", "speech", "organa", "mnist-sizes", "speech-sizes", "organa-sizes", "tiny"} == {*claim.parts}
    assert equal_parts(claim) == ("mnist-equal", "speech-equal", "organa-equal")
    assert "| pdcl over er | accuracy | mnist | **+5.0" in by_size(of_paper(scan(study.directory), ("tamed",)))


def test_two_settings_in_which_er_is_beaten_say_nothing_of_some_setting(study, fake_run) -> None:
    er = "In some settings no method is clearly better than er"

    def beaten(memory: int) -> None:
        for method, accuracy in (("er", 0.80), ("pdcl", 0.90)):
            study(method, accuracy, memory=memory)
            setting = {"stream": "mnist", "preset": "tamed", "memory": memory, "seed": 4}
            fake_run(study.directory, accuracy + 0.003, method=method, label=method, **setting)

    beaten(200)
    beaten(500)
    assert finding(er, study.directory).verdict == UNDECIDED
    beaten(1000)
    assert finding(er, study.directory).verdict == NOT_HELD


def test_less_forgetting_counts_for_a_claim_about_forgetting(study) -> None:
    study("er", 0.80, forgetting=0.3)
    study("pdcl0", 0.80, forgetting=0.1)
    found = finding("Dual weights forget less: pdcl0 over er, less forgetting, mnist", study.directory)
    assert (found.verdict, found.number) == (HELD, pytest.approx(20.0))


def test_ablations_are_no_part_of_plain_runs_and_are_found_by_what_was_given(study) -> None:
    study("pdcl", 0.90, forgetting=0.05)
    study("pdcl", 0.40, forgetting=0.50, options={"tolerance": 0.5})
    runs = Runs(scan(study.directory))
    assert len(runs.find("mnist", "pdcl", 500)) == len(runs.find("mnist", "pdcl", 500, tolerance=0.5)) == 4
    assert not runs.find("mnist", "pdcl", 500, tolerance=0.05)
    assert finding("A loose ε forgets more, mnist", study.directory).verdict == HELD


def test_a_tight_tolerance_that_is_better_has_lost_less_than_nothing(study) -> None:
    study("pdcl", 0.80)
    study("pdcl", 0.85, options={"tolerance": 0.0005})
    found = finding("A tight ε loses accuracy, mnist", study.directory)
    assert (found.verdict, found.number, found.unit) == (NOT_HELD, pytest.approx(-5.0), "points lost")


@pytest.mark.parametrize(
    ("judge", "difference", "verdict"),
    [(no_more, 0.2, HELD), (no_more, 2.0, NOT_HELD), (no_less, -0.2, HELD), (no_less, -2.0, NOT_HELD),
     (within, 0.2, HELD), (within, -3.0, NOT_HELD), (within, 1.0, UNDECIDED)],
)  # fmt: skip
def test_margins(judge: Any, difference: float, verdict: str) -> None:
    a = {seed: 50 + difference + 0.01 * (-1) ** seed for seed in range(6)}
    assert judge(a, dict.fromkeys(range(6), 50.0), 1.0).verdict == verdict


def test_one_seed_decides_nothing_and_none_was_not_run() -> None:
    assert more({0: 2.0}, {0: 1.0}).verdict == UNDECIDED
    assert math.isnan(more({0: 2.0}, {0: 1.0}).low)
    assert more({0: 2.0}, {1: 1.0}).verdict == NOT_RUN


def test_a_modest_gain_with_a_small_memory_is_one_below_that_with_a_large_memory(study) -> None:
    says = "With a small memory (200) PDCL is modest: it gains less over er than with 1000, speech"
    for memory, gain in ((200, 0.05), (1000, 0.08)):
        study("er", 0.70, stream="speech", memory=memory)
        study("pdcl", 0.70 + gain, spread=0.002, stream="speech", memory=memory)
    assert finding(says, study.directory).number == pytest.approx(3.0)
    assert finding(says, study.directory).verdict == HELD


def test_what_the_paper_does_not_say_is_called_ours() -> None:
    ours = [claim.says for claim in CLAIMS if claim.source == "ours"]
    for start, count in (("BP improves on a uniform partition", 3), ("A dual that has settled is the slope", 1)):
        assert sum(says.startswith(start) for says in ours) == count


def test_an_interval_of_correlations_stays_between_minus_1_and_1() -> None:
    found = correlated({0: 0.99999, 1: 0.2, 2: 0.95, 3: -0.1})
    assert -1 < found.low < 0 < found.number < found.high < 1
    assert found.verdict == UNDECIDED
    assert correlated({0: 1.0, 1: 1.0, 2: 1.0}).verdict == HELD
    assert correlated({}).verdict == NOT_RUN
    assert math.isnan(correlated({0: 0.5}).low)


def left_by_whatif(path, *points: tuple[float, float, float, float | None], value: float = 9.0) -> None:
    """A curve beside a run: γ, gain, line and standard error of every point, and P(ε)."""
    found = [dict(zip(("change", "gain", "line", "error"), point, strict=True)) for point in points]
    (path / "whatif-task1.json").write_text(json.dumps({"dual": 0.2, "value": value, "points": found}))


PRICES = "Duals are prices: a looser ε (γ > 0) lowers P by no more than λγ, mnist"


def test_prices_hold_where_points_lie_above_the_line_beyond_the_noise_of_seeds(study) -> None:
    paths = study("pdcl0", 0.9, options={"dual_steps": 240})
    for seed, path in enumerate(paths):
        left_by_whatif(path, (0.1, -0.01 + 0.001 * seed, -0.02, 0.001), (-0.1, 0.021, 0.02, 0.001))
    assert finding(PRICES, study.directory).verdict == HELD
    for seed, path in enumerate(paths):
        left_by_whatif(path, (0.1, -0.02 + 0.05 * (-1) ** seed, -0.02, 1.0))
    assert finding(PRICES, study.directory).verdict == UNDECIDED, "points that noise alone keeps show nothing"
    for path in paths:
        left_by_whatif(path, (0.1, -0.03, -0.02, 1.0))
    assert finding(PRICES, study.directory).verdict == NOT_HELD


def test_a_dual_is_held_against_the_slope_on_both_sides_of_its_tolerance(study) -> None:
    paths = study("pdcl0", 0.9, options=SETTLED)
    says = "A dual that has settled is the slope of P at ε, to within half of λ, mnist"
    for slope, verdict in ((0.2, HELD), (0.5, NOT_HELD), (0.0, NOT_HELD)):
        for seed, path in enumerate(paths):
            wrong = 0.0001 * (-1) ** seed
            left_by_whatif(
                path, (-0.1, slope * 0.1 + wrong, 0.02, 0.1), (0.1, -slope * 0.1, -0.02, 0.1), (0.3, 9, 9, 1)
            )
        assert finding(says, study.directory).verdict == verdict, f"λ = .2, slope {slope}"


def test_a_tighter_tolerance_is_judged_apart_from_a_looser_one(study) -> None:
    for seed, path in enumerate(study("pdcl0", 0.9, options=SETTLED)):
        noise = 0.0001 * (-1) ** seed
        left_by_whatif(path, (-0.05, 0.005 + noise, 0.01, 0.001), (0.3, 0.1 + noise, -0.06, 0.001))
    says = "Duals that have settled are prices: {}, plain SGD and ε = .1, mnist"
    tighter = finding(says.format("a tighter ε (γ < 0) raises P by no less than −λγ"), study.directory)
    looser = finding(says.format("a looser ε (γ > 0) lowers P by no more than λγ"), study.directory)
    assert (tighter.verdict, tighter.number) == (NOT_HELD, pytest.approx(-0.1))
    assert (looser.verdict, looser.number) == (HELD, pytest.approx(0.16 / 0.3))


def test_a_point_that_no_loss_can_lie_below_decides_nothing(study) -> None:
    for path in study("pdcl0", 0.9, options={"dual_steps": 240}):
        left_by_whatif(path, (0.1, -0.03, -0.02, 0.01), (0.5, -0.05, -0.1, 0.01), value=0.05)
    assert finding(PRICES, study.directory).number == pytest.approx(-0.1), "the far point isn't counted"
    line = "| mnist, as printed, memory 500 | 0.2 | +0.5 | −0.0500 | 0.0200 | −0.1000 | 4 of 4 | 4 | 0.000 | 4 |"
    assert line in reasons(scan(study.directory))


def test_noise_alone_makes_no_price_worse(study) -> None:
    for network, noise in (("mlp:10-10", 0.1), ("mlp:400-400", 0.001)):
        for path in study("pdcl0", 0.9, options={**SETTLED, "network": network}):
            left_by_whatif(path, (0.1, -0.02 + noise, -0.02, noise), (-0.1, 0.02 - noise, 0.02, noise))
    says = "Prices of a narrow network are worse than those of a wide one: P lies further below −λγ"
    assert finding(says, study.directory).number == pytest.approx(0.0, abs=1e-9)


def test_a_single_solution_shows_no_noise_so_its_curve_decides_nothing(study) -> None:
    for path in study("pdcl0", 0.9, options={"dual_steps": 240}):
        left_by_whatif(path, (0.1, -1.0, -0.02, None))
    assert finding(PRICES, study.directory).verdict == NOT_RUN


def test_a_price_is_worse_the_further_points_lie_below_its_line(study) -> None:
    for network, gain in (("mlp:10-10", -0.08), ("mlp:400-400", 0.5)):
        for seed, path in enumerate(study("pdcl0", 0.9, options={**SETTLED, "network": network})):
            left_by_whatif(path, (0.1, gain + 0.001 * seed, -0.02, 0.01), (0.2, 0.0, -0.04, 0.01))
    says = "Prices of a narrow network are worse than those of a wide one: P lies further below −λγ"
    found = finding(says, study.directory)
    assert (found.verdict, found.number) == (HELD, pytest.approx(0.58 / 0.3))
    line = "| mnist, settled, 10 units, memory 500 | 0.2 | +0.1 | −0.0785 | 0.0200 | −0.0200 | 0 of 4 | 0 | 0.585 | 4 |"
    assert line in reasons(scan(study.directory))


def test_wrong_labels_are_found_by_the_ids_of_stored_samples(tmp_path, fake_run) -> None:
    from pdcl.lab.paper.measures import wrong_among_large_of_tasks, wrong_stored
    from pdcl.streams.catalog import load as load_stream

    noisy = load_stream("digits", noise=0.1).tasks[0].data.targets
    wrong = (noisy != load_stream("digits").tasks[0].data.targets).numpy()
    ids = np.concatenate([np.flatnonzero(wrong)[:5], np.flatnonzero(~wrong)[:15]])
    path = fake_run(tmp_path, stream_options={"noise": 0.1})
    dual = np.where(wrong[ids], 2.0, 0.5).astype(np.float32)
    columns = {"x": np.zeros((20, 2), np.float32), "y": noisy.numpy()[ids], "task": np.zeros(20, np.int64), "id": ids}
    save_file({**columns, "dual": dual}, path / "memory.safetensors")
    row = scan(tmp_path)[0]
    assert wrong_stored(row) == pytest.approx(25.0)
    assert wrong_among_large_of_tasks(row) == pytest.approx(75.0)


def test_partition_by_dual_is_held_against_the_uniform_one_of_agem_too(study) -> None:
    study("agem", 0.20)
    study("pdcl", 0.80)
    says = "Partition by dual improves on a uniform one: pdcl over agem, accuracy, mnist"
    assert finding(says, study.directory).verdict == HELD


def test_claims_that_are_not_tested_are_listed_with_the_tests_that_check_a_part(study, tmp_path) -> None:
    study("er", 0.80)
    write_page([study.directory], tmp_path / "paper.md")
    told = (tmp_path / "paper-claims.md").read_text().partition("## Claims not tested")[2].partition("\n## ")[0]
    for what in ("Proposition 1", "Lemma 1", "Corollary 1", "λ = 0", "Proposition 2", "BP without", "Fig. 1"):
        assert what in told
    root = Path(__file__).parents[2]
    files = {file for _, _, named in UNTESTED for file in named}
    assert files
    assert all((root / file).is_file() for file in files)


def test_every_claim_names_a_part_of_the_study() -> None:
    parts = load("paper").parts
    assert {part for claim in CLAIMS for part in claim.parts} <= {*parts}
    assert len({claim.says for claim in CLAIMS}) == len(CLAIMS)


def test_the_page_has_a_row_for_every_claim_and_its_figures_beside_it(study, tmp_path, capsys) -> None:
    study("er", 0.80)
    study("pdcl0", 0.82)
    study("pdcl", 0.83)
    study("pdcl", 0.93, preset="equal")
    page = tmp_path / "docs" / "paper.md"
    page.parent.mkdir()
    assert command_line.main([str(study.directory), "--out", str(page)]) == 0
    text = page.with_stem("paper-claims").read_text()
    for claim in CLAIMS:
        assert f"| {claim.says} |" in text
    assert (
        "| +2.00 points | +2.00 to +2.00 | 4 | **held** | [partitioning-tamed](paper/partitioning-tamed.png) |" in text
    )
    assert "| – | – | 0 | not run |  | `pdcl study paper --part alpha` |" in text
    assert (page.parent / "paper" / "partitioning-tamed.png").is_file()
    assert not (page.parent / "paper" / "sweeps-tamed.png").exists(), "one size of memory is no sweep"
    assert not [*(page.parent / "paper").glob("*.pdf")]
    second = text.partition("## Claims, equal")[2].partition("\n## ")[0]
    assert second.count("| Fig. 4 left |") == 1, "pdcl alone: how it divides memory"
    assert second.count("`pdcl study paper") == 2, "among all tasks and among past ones"
    assert "**mnist, preset equal**" in text
    assert "wrote" in capsys.readouterr().out


def test_baselines_with_settings_for_sgd_are_held_against_runs_of_their_own(study) -> None:
    says = "Dual weights improve on a baseline with settings tuned for SGD: pdcl0 over er, accuracy, mnist"
    study("pdcl0", 0.84)
    study("er", 0.79, 0.0)
    assert finding(says, study.directory).verdict == NOT_RUN
    study("er", 0.86, 0.0, label="er-reported", options={"optimizer": "sgd", "lr": 0.1})
    assert finding(says, study.directory).verdict == NOT_HELD
    told = reasons(of_paper(scan(study.directory), ("tamed",))).partition("### Baselines with")[2].partition("###")[0]
    assert "| er | preset | 79.0 |" in told
    assert "| er | for SGD | 86.0 |" in told


def divided(path, places: list[int], errors: list[float]) -> None:
    """A run of as many tasks, with this partition and these errors at the end."""
    content = json.loads((path / "result.json").read_text())
    content.pop(checksum.KEY, None)
    tasks, final = len(places), [1 - each for each in errors]
    content["partitions"] = [places[: k + 1] for k in range(tasks)]
    content["duals"] = [[0.5] * (k + 1) if k else [] for k in range(tasks)]
    content["accuracy"] = {"class_il": [final] * tasks, "task_il": [final] * tasks}
    content["confusion"] = [[1] * (2 * tasks)] * (2 * tasks)
    (path / "result.json").write_text(json.dumps(content))


def test_the_newest_task_counts_for_nothing_in_how_past_ones_are_divided(study) -> None:
    uneven = "Memory is divided unevenly among past tasks (by more than 5 %), mnist"
    harder = "Harder tasks get more of memory: places of past tasks go along with their errors under er, mnist"
    errors = [0.1, 0.2, 0.3, 0.0]
    for path in study("er", 0.8):
        divided(path, [50, 50, 50, 50], errors)
    paths = study("pdcl", 0.8)
    for places, verdicts in (
        ([50, 51, 52, 300], (NOT_HELD, HELD)),
        ([50, 100, 150, 0], (HELD, HELD)),
        ([150, 100, 50, 0], (HELD, NOT_HELD)),
    ):
        for path in paths:
            divided(path, places, errors)
        assert tuple(finding(says, study.directory).verdict for says in (uneven, harder)) == verdicts


def test_the_whole_partition_counts_the_newest_task_too(study) -> None:
    for path in study("pdcl", 0.8):
        divided(path, [50, 50, 50, 150], [0.1, 0.2, 0.3, 0.0])
    whole = finding("Memory is divided unevenly (by more than 5 %), mnist", study.directory)
    assert (whole.verdict, whole.number) == (HELD, pytest.approx(25.0))
    among_past = "Memory is divided unevenly among past tasks (by more than 5 %), mnist"
    assert finding(among_past, study.directory).verdict == NOT_HELD


def test_the_table_of_duals_has_each_past_task_beside_its_slack_and_the_artificial_one_apart(study, tmp_path) -> None:
    for path in study("pdcl", 0.83):
        began = {"event": "task_began", "task": 2, "name": "b", "samples": 60, "steps": 60, "classes": ["2"]}
        moved = {"event": "duals_moved", "task": 2, "step": 9, "tolerances": [0.1, 0.1], "current": 7.0}
        events = (began, {**moved, "duals": [0.25, 0.5], "slacks": [0.125, -0.5]})
        (path / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    write_page([study.directory], tmp_path / "paper.md")
    line = "| mnist | tamed | pdcl | 500 | 0.25, 0.5 | 7 | 0.125, −0.5 | 1 of 2 |"
    assert line in (tmp_path / "paper-claims.md").read_text()


def test_differences_at_other_sizes_of_memory_have_a_table(study, tmp_path) -> None:
    for memory, gain in ((500, 0.02), (200, -0.03)):
        study("er", 0.80, memory=memory)
        study("pdcl0", 0.80 + gain, memory=memory)
    write_page([study.directory], tmp_path / "paper.md")
    table = (tmp_path / "paper-claims.md").read_text().partition("## By size of memory")[2].partition("\n## ")[0]
    cells = "**−3.0 (−3.0 to −3.0, 4)** | **+2.0 (+2.0 to +2.0, 4)** |"
    assert f"| pdcl0 over er | accuracy | mnist | {cells}" in table
    assert "speech" not in table


def test_every_picture_has_a_caption_and_those_of_printed_presets_come_first(study, tmp_path) -> None:
    study("er", 0.80)
    study("pdcl", 0.83)
    study("pdcl", 0.85, memory=2000)
    study("pdcl", 0.93, preset="equal")
    write_page([study.directory], tmp_path / "paper.md")
    text = (tmp_path / "paper-claims.md").read_text().partition("## Figures")[2]
    drawn = {path.stem for path in (tmp_path / "paper").glob("*.png")}
    names = [line.split(".** ")[0].removeprefix("**") for line in text.splitlines() if line.startswith("**")]
    assert {*names} == drawn
    assert len(names) == len(drawn)
    ends = [name.rpartition("-")[2] for name in names]
    assert ends == sorted(ends, key=["tamed", "equal", "zeta"].index)
    told = next(line for line in text.splitlines() if line.startswith("**partition-mnist-tamed.** "))
    assert "(paper: Fig. 4 left). mnist; preset `tamed`; pdcl; memory 500; seed 0." in told
    assert "mnist; preset `tamed`; er, pdcl; memory 500, 2000; 4 seeds. Bars: 95 % intervals" in text
    assert "![How memory is divided: mnist; preset tamed; pdcl; memory 500; seed 0](paper/partition-mnist-tamed" in text


def test_what_was_not_drawn_for_one_reason_stands_on_one_line(study, tmp_path) -> None:
    study("er", 0.80)
    study("er", 0.80, preset="equal")
    write_page([study.directory], tmp_path / "paper.md")
    lines = (tmp_path / "paper-claims.md").read_text().partition("Not drawn:")[2].splitlines()
    assert "- duals-mnist-equal, duals-mnist-tamed: no primal-dual method was run" in lines
    reasons_given = [line.partition(": ")[2] for line in lines if line.startswith("- ")]
    assert len(reasons_given) == len({*reasons_given})


def drawn_answers(study, tmp_path) -> Drawn:
    drawn = Drawn(tmp_path, ("svg",))
    draw_answers(drawn, of_paper(scan(study.directory), ("tamed",)))
    return drawn


def test_prices_are_drawn_beside_their_line_with_intervals_over_seeds(study, tmp_path) -> None:
    for seed, path in enumerate(study("pdcl0", 0.9, options={"dual_steps": 240})):
        left_by_whatif(path, (0.1, -0.01 + 0.002 * (-1) ** seed, -0.02, 0.001), (0.2, -0.03, -0.04, 0.001))
    assert drawn_answers(study, tmp_path).shown["prices-mnist-tamed"].rows
    rows = list(Runs(scan(study.directory)).find("mnist", "pdcl0", 500, dual_steps=240).values())
    (axes,) = price_panels({"as printed": rows}).axes
    line = next(each for each in axes.lines if each.get_label().startswith("−λγ"))
    assert [*line.get_xdata(), *line.get_ydata()] == pytest.approx([0.0, 0.2, 0.0, -0.04]), "λ = 0.2"
    points, _, (bars,) = axes.containers[0].lines
    assert points.get_xydata() == pytest.approx(np.array([[0.1, -0.01], [0.2, -0.03]]))
    low, high = (end[1] for end in bars.get_segments()[0])
    assert (high - low) / 2 == pytest.approx(interval([-0.008, -0.012, -0.008, -0.012])[1])


def test_prices_without_noise_are_not_drawn_and_the_page_says_why(study, tmp_path) -> None:
    for path in study("pdcl0", 0.9, options={"dual_steps": 240}):
        left_by_whatif(path, (0.1, -1.0, -0.02, None))
    assert "several solutions a point" in drawn_answers(study, tmp_path).skipped["prices-mnist-tamed"]


def test_changed_forms_stand_below_the_printed_ones_with_wrong_labels_beside_right_ones(study, tmp_path) -> None:
    study("er", 0.80, 0.0)
    study("pdcl", 0.83, 0.0)
    assert drawn_answers(study, tmp_path).skipped["variants-mnist-tamed"] == "no changed form of a method was run"
    study("er", 0.60, 0.0, stream_options={"noise": 0.1})
    study("pdcl", 0.84, 0.0, options={"partition": "generalization"})
    study("pdcl", 0.85, 0.0, options={"start": 1.0})
    study("pdcl", 0.10, 0.0, options={"tolerance": 0.5})
    study("pdcl-s", 0.70, 0.0, label="pdcl-s-clipped", options={"clip": 0.9})
    drawn = drawn_answers(study, tmp_path)
    assert len(drawn.shown["variants-mnist-tamed"].rows) == 6 * len(SEEDS), "a sweep over ε has its own figure"
    text = (tmp_path / "variants-mnist-tamed.svg").read_text()
    order = [f">{name}<" for name in ("er", "pdcl", "pdcl, BP", "pdcl, λ from 1", "pdcl-s-clipped")]
    assert [text.index(name) for name in order] == sorted(text.index(name) for name in order)
    assert "10 % wrong labels" in text


def test_what_claims_compare_is_in_the_figure_that_they_link_to(study, tmp_path) -> None:
    study("er", 0.80, 0.0)
    study("er", 0.81, 0.0, options={"lr": 0.001})
    study("pdcl", 0.82, 0.0, options={"tolerance": "1.1x"})
    study("er", 0.85, 0.0, label="er-reported", options={"optimizer": "sgd", "lr": 0.1})
    for memory, network in ((50, "mlp:400-400"), (500, "mlp:10-10"), (500, "mlp:400-400")):
        for path in study("pdcl0", 0.9, memory=memory, options={**SETTLED, "network": network}):
            left_by_whatif(path, (0.1, -0.01, -0.02, 0.001), (-0.1, 0.0, 0.02, 0.001))
    drawn = drawn_answers(study, tmp_path)
    text = (tmp_path / "variants-mnist-tamed.svg").read_text()
    for name in ("er, Adam at .001", "pdcl, ε = 1.1 m_k", "er, tuned for SGD"):
        assert f">{name}<" in text
    assert len(drawn.shown["capacity-mnist-tamed"].rows) == 3 * len(SEEDS)
    text = (tmp_path / "capacity-mnist-tamed.svg").read_text()
    for name in ("400 units, memory 50", "10 units, memory 500", "400 units, memory 500", "above −λγ by −0.050"):
        assert f">{name}<" in text
    linked = {claim.part: claim.figure for claim in CLAIMS}
    assert (linked["capacity"], linked["noise"]) == ("capacity-mnist", "what-wrong-labels-do")


def test_a_method_that_learns_little_is_shown_to_have_little_to_forget(study) -> None:
    for method in ("er", "pdcl"):
        study(method, 0.8)
    assert "forgets least" not in reasons(scan(study.directory)), "no run of xder, nothing to explain"
    study("xder", 0.5)
    told = reasons(scan(study.directory)).partition("### Why xder forgets least")[2].partition("###")[0]
    assert [line.split(" | ")[1] for line in told.splitlines() if line.startswith("| mnist")] == ["er", "xder", "pdcl"]


def test_what_duals_leave_for_a_new_task_is_their_share_of_the_lagrangian(study) -> None:
    study("er", 0.8, 0.0)
    assert "left for a new task" not in reasons(scan(study.directory)), "no duals, nothing to share with"
    study("pdcl", 0.7, 0.0, stream="tiny_imagenet")
    told = reasons(scan(study.directory)).partition("### What is left for a new task")[2].partition("###")[0]
    assert "| tiny_imagenet | pdcl | 1.5 | 40 |" in told, "λ = 1.5 of the one past task: 1 of 2.5 parts are left"
    assert "| mnist |" not in told


def test_a_claim_links_to_the_figure_that_has_its_stream(study, tmp_path) -> None:
    for method, score in (("er", 0.80), ("pdcl0", 0.82), ("pdcl", 0.83)):
        study(method, score)
        study(method, score, stream="tiny_imagenet", preset="small-paper")
    write_page([study.directory], tmp_path / "paper.md")
    lines = (tmp_path / "paper-claims.md").read_text().splitlines()
    for stream, preset in (("mnist", "tamed"), ("tiny_imagenet", "small-paper")):
        claim = f"| Dual weights improve on fixed ones: pdcl0 over er, accuracy, {stream} |"
        assert f"[partitioning-{preset}](paper/" in next(line for line in lines if line.startswith(claim))


def test_the_second_table_has_the_claims_and_the_commands_of_its_own_parts(study, tmp_path) -> None:
    for method, score in (("er", 0.80), ("pdcl0", 0.82), ("pdcl", 0.83)):
        study(method, score)
        study(method, score + 0.1, preset="equal")
    page = tmp_path / "paper.md"
    assert command_line.main([str(study.directory), "--out", str(page)]) == 0
    second = page.with_stem("paper-claims").read_text().partition("## Claims, equal")[2].partition("\n## ")[0]
    claims = [line for line in second.splitlines() if line.startswith("| Dual")]
    parts = {word.rstrip("` |") for line in second.splitlines() for word in line.split("--part ")[1:]}
    parts = {part.split()[0] for part in parts}
    assert len(claims) == 2, "accuracy and forgetting against er on mnist"
    assert "not run" not in second
    assert parts
    assert parts <= {*load("paper").parts}, "every command names a part that there is"


def test_the_page_is_the_same_from_the_runs_that_it_keeps(study, tmp_path, fake_run, monkeypatch) -> None:
    study("er", 0.80)
    study("pdcl", 0.83)
    with monkeypatch.context() as patched:
        per_sample = {**fake_run.config["options"], "level": {"value": "sample", "source": "method"}}
        patched.setattr(fake_run, "config", {**fake_run.config, "options": per_sample})
        for path in study("pdcl-s", 0.7):
            with_snapshot(path)
    for path in study("pdcl0", 0.9, options={"dual_steps": 240}):
        left_by_whatif(path, (0.1, 1.0, 0.5, 0.1))
    pages = [tmp_path / name / "paper.md" for name in ("first", "second")]
    for page in pages:
        page.parent.mkdir()
    write_page([study.directory], pages[0])
    packed = pages[0].parent / "paper" / "runs.jsonl.gz"
    unpack(packed, tmp_path / "there")
    assert not [*(tmp_path / "there").glob("*/memory.safetensors")], "no sample leaves, and no features of one"
    assert len([*(tmp_path / "there").glob("*/map.json")]) == 1
    write_page([tmp_path / "there"], pages[1])
    first, second = (page.with_stem("paper-claims").read_text().split("## Claims", 1)[1] for page in pages)
    assert first == second
    assert "Large duals lie at the borders of their task's classes, mnist | Fig. 5 | +" in first
    assert "lowers P by no more than λγ, mnist | Theorem 1 | +5.00 by unit of γ" in first
    pictures = [sorted(each.name for each in (page.parent / "paper").iterdir()) for page in pages]
    assert pictures[0] == pictures[1]
    assert "map-mnist-tamed.png" in pictures[0]
    assert packed.read_bytes() == (pages[1].parent / "paper" / "runs.jsonl.gz").read_bytes()
    maps = [(page.parent / "paper" / "map-mnist-tamed.png").read_bytes() for page in pages]
    assert maps[0] == maps[1]


def test_runs_whose_duals_are_drawn_keep_a_dozen_dual_steps_and_others_two(study, tmp_path) -> None:
    for path in study("pdcl", 0.83):
        began = {"event": "task_began", "task": 1, "name": "b", "samples": 60, "steps": 60, "classes": ["2"]}
        moved = {"event": "duals_moved", "task": 1, "slacks": [0.1], "tolerances": [0.1], "current": 1.0}
        steps = [{**moved, "step": k, "duals": [0.1 * k]} for k in range(60)]
        (path / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (began, *steps)))
    write_page([study.directory], tmp_path / "paper.md")
    unpack(tmp_path / "paper" / "runs.jsonl.gz", tmp_path / "there")
    kept = [path.read_text().splitlines() for path in sorted((tmp_path / "there").glob("*/events.jsonl"))]
    assert sorted(map(len, kept)) == [3, 3, 3, 13]
    assert {json.loads(each[-1])["step"] for each in kept} == {59}
    assert {json.loads(each[1])["step"] for each in kept if len(each) == 3} == {29}, "the middle of the task"


def test_runs_at_other_tolerances_keep_a_dozen_dual_steps_of_every_seed(study, tmp_path) -> None:
    study("er", 0.8)
    for path in study("pdcl", 0.83, options={"tolerance": 0.0005}):
        moved = {"event": "duals_moved", "task": 1, "slacks": [0.1], "tolerances": [0.1], "current": 1.0}
        steps = [{**moved, "step": k, "duals": [0.1 * k]} for k in range(60)]
        (path / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in steps))
    write_page([study.directory], tmp_path / "paper.md")
    unpack(tmp_path / "paper" / "runs.jsonl.gz", tmp_path / "there")
    kept = [len(path.read_text().splitlines()) for path in (tmp_path / "there").glob("*pdcl*/events.jsonl")]
    assert kept == [12, 12, 12, 12]


@pytest.mark.parametrize(("peak", "verdict"), [(59, HELD), (30, NOT_HELD)])
def test_a_dual_at_a_tight_tolerance_is_to_grow_to_the_end_of_a_task(study, tmp_path, peak, verdict) -> None:
    says = "λ still grows in the second half of tasks where ε is tight, mnist"
    for seed, path in enumerate(study("pdcl", 0.8, options={"tolerance": 0.0005})):
        moved = {"event": "duals_moved", "task": 1, "slacks": [0.1], "tolerances": [0.1], "current": 1.0}
        steps = [{**moved, "step": k, "duals": [0.1 * (peak - abs(peak - k)) + 0.001 * seed * k]} for k in range(60)]
        (path / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in steps))
    found = finding(says, study.directory)
    assert found.verdict == verdict
    write_page([study.directory], tmp_path / "paper.md")
    unpack(tmp_path / "paper" / "runs.jsonl.gz", tmp_path / "there")
    assert finding(says, tmp_path / "there").number == pytest.approx(found.number, rel=0.05), "packed runs tell it too"
    for path in (tmp_path / "there").glob("*/events.jsonl"):
        path.write_text(path.read_text().splitlines()[-1] + "\n")
    assert finding(says, tmp_path / "there").verdict == NOT_RUN, "the last dual step alone tells nothing"


def test_reasons_tell_what_is_stored_and_what_the_rate_does(study, tmp_path) -> None:
    for path in [*study("pdcl", 0.85, 0.0), *study("pdcl-s", 0.7, 0.0)]:
        with_snapshot(path)
    study("agem", 0.1, 0.0)
    study("agem", 0.5, 0.0, options={"lr": 0.001})
    text = reasons(of_paper(scan(study.directory), ("tamed",)))
    assert "| mnist | pdcl-s | 70.0 | 50.0 | – | 1.5 | 4 |" in text
    assert "| agem | .01, as in the preset | 10.0 | 94.0 | 15.0 | 4 |" in text
    assert "| agem | a tenth (.001) | 50.0 | 94.0 | 55.0 | 4 |" in text
    assert "version 0.01" in text
    assert "wrong labels" not in text  # no run with noise


def test_reasons_show_whether_more_dual_steps_or_an_earlier_start_help(study) -> None:
    study("er", 0.8, 0.0, stream="organa")
    study("pdcl", 0.5, 0.0, stream="organa")
    assert "dual steps a task" not in reasons(of_paper(scan(study.directory), ("tamed",)))
    study("pdcl", 0.7, 0.0, stream="organa", options={"dual_steps": 240})
    study("pdcl", 0.6, 0.0, stream="organa", options={"start": 1.0})
    text = reasons(of_paper(scan(study.directory), ("tamed",)))
    assert "| organa | er | – | – | 80.0 | 85.0 | 80.0 | – | – | 4 |" in text
    assert "| organa | pdcl | 60 | 0 | 50.0 | 55.0 | 50.0 |" in text
    assert "| organa | pdcl | 240 | 0 | 70.0 | 75.0 | 70.0 |" in text
    assert "| organa | pdcl | 60 | 1 | 60.0 | 65.0 | 60.0 |" in text


def test_duals_that_start_at_one_are_held_against_replay_by_runs_of_their_own(study) -> None:
    says = "Dual weights that start at 1 improve on fixed ones: pdcl over er, accuracy, organa"
    study("er", 0.8, stream="organa")
    study("pdcl", 0.5, stream="organa")
    assert finding(says, study.directory).verdict == NOT_RUN
    study("pdcl", 0.85, stream="organa", options={"start": 1.0})
    assert finding(says, study.directory).verdict == HELD


def test_verdicts_that_hang_on_what_the_paper_does_not_print_are_named(study, tmp_path) -> None:
    says = "Dual weights improve on fixed ones: pdcl0 over er, accuracy, organa"
    study("er", 0.8, stream="organa")
    study("pdcl0", 0.5, stream="organa")
    page = tmp_path / "paper.md"
    write_page([study.directory], page)
    assert "## Verdicts that hang" not in page.read_text()
    study("pdcl0", 0.85, stream="organa", options={"start": 1.0})
    study("er", 0.8, stream="organa", options={"epochs": 4})
    study("pdcl0", 0.82, stream="organa", options={"epochs": 4, "dual_steps": 240})
    write_page([study.directory], page)
    told = page.read_text().partition("## Verdicts that hang")[2].partition("\n## ")[0]
    printed = f"| {says} | **−30.0 (−30.0 to −30.0, 4)** | not held |"
    assert f"{printed} organa, λ from 1 | **+5.0 (+5.0 to +5.0, 4)** | held |" in told
    assert f"{printed} organa, four epochs | **+2.0 (+2.0 to +2.0, 4)** | held |" in told


def test_steps_are_pooled_seed_by_seed_over_settings(study) -> None:
    """The oracle: the interval of the seeds' mean differences, by hand."""
    from pdcl.lab.paper.settings import PRINTED, pooled

    gains = {200: (0.01, 0.03), 500: (0.05, 0.004), 1000: (-0.02, 0.002)}
    for memory, (gain, spread) in gains.items():
        study("er", 0.8, 0.0, memory=memory)
        study("pdcl0", 0.8 + gain, spread, memory=memory)
    by_seed = [
        statistics.fmean(100 * (gain + spread * (-1) ** seed * (1 + seed)) for gain, spread in gains.values())
        for seed in SEEDS
    ]
    found, count = pooled("pdcl0", "er", "mean_accuracy", PRINTED, Runs(scan(study.directory)))
    mean, half = interval(by_seed)
    assert (count, found.n) == (3, 4)
    assert (found.number, found.low, found.high) == pytest.approx((mean, mean - half, mean + half))


def test_the_first_page_says_what_there_is_to_reproduce_and_counts_what_can_fail(study, tmp_path) -> None:
    for method, score in (("er", 0.80), ("agem", 0.1), ("pdcl0", 0.82), ("pdcl", 0.83)):
        study(method, score)
    write_page([study.directory], tmp_path / "paper.md")
    text = (tmp_path / "paper.md").read_text()
    assert "blank figures and prints no table of results" in text
    assert (tmp_path / "paper" / "steps.png").is_file()
    assert "(paper/steps.png)" in text
    own = [claim for claim in CLAIMS if claim.source != "ours" and "agem" not in claim.says]
    assert f"Of the {len(own)} others" in text
    assert len([claim for claim in CLAIMS if claim.source != "ours"]) - len(own) == 15, "rows that can't fail"


def test_an_interval_for_many_rows_is_as_long_as_that_at_their_level() -> None:
    values = {0: 1.0, 1: 2.5, 2: 1.7, 3: 2.2, 4: 1.1}
    found = more(values, dict.fromkeys(values, 0.0))
    assert found.verdict == HELD
    assert found.widened(1) == found
    mean, half = interval(list(values.values()), 1 - 0.05 / 77)
    wide = found.widened(77)
    assert (wide.low, wide.high) == pytest.approx((mean - half, mean + half))
    assert wide.verdict == UNDECIDED
    together = correlated({0: 0.5, 1: 0.6, 2: 0.7, 3: 0.4}).widened(1000)
    assert -1 < together.low < 0 < together.high < 1


def test_a_reading_is_held_against_the_printed_form_and_against_er(study, tmp_path) -> None:
    study("er", 0.80, 0.0)
    study("pdcl", 0.84, 0.0)
    study("pdcl", 0.86, 0.0, options={"current_cap": 1.0})
    write_page([study.directory], tmp_path / "paper.md")
    told = (tmp_path / "paper.md").read_text().partition("## Readings that the paper leaves open")[2]
    assert "| mnist | pdcl | 86.0 | **+2.0 (+2.0 to +2.0, 4)** | **+6.0 (+6.0 to +6.0, 4)** | `newest` |" in told
    assert "Not run: duals and Adam's state go on from task to task (mnist); κ = 1 (mnist)" in told


def test_runs_whose_rules_have_changed_since_are_named(tmp_path, fake_run) -> None:
    from pdcl.lab.paper.front import made_by

    def record(method: str, lr: float, **config: Any) -> None:
        fake_run.config = {**fake_run.config, "options": {"lr": {"value": lr, "source": "preset paper"}}}
        versions = {"pdcl": "0.2.0", "commit": "0123456789ab"}
        full = {"stream": "mnist", "preset": "paper", "memory": 500, "versions": versions, **config}
        fake_run(tmp_path, method=method, **full)

    record("er", 0.01)
    record("from-a-plug-in", 0.02)
    assert made_by(scan(tmp_path)).endswith("Runs by commit: `0123456789ab` 2.")
    record("gss", 0.03)
    record("pdcl-s", 0.01, options={"level": "sample", "rescore": False}, versions={"pdcl": "0.1.0"})
    told = made_by(scan(tmp_path))
    assert "changed**: 1 of gss with lr = 0.03, now 0.01; 1 of pdcl-s by version 0.1.0" in told


def test_every_reading_is_a_part_of_the_study_with_these_methods_and_options() -> None:
    from pdcl.lab.paper.readings import READINGS

    parts = load("paper").parts
    for reading in READINGS:
        assert {*reading.labels} <= {*parts[reading.part].methods}, reading.says


def with_snapshot(path) -> None:
    """A memory of two classes in one task, with the largest duals between them."""
    generator = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    features = (generator.normal(0, 1, (80, 2)) + 2.2 * y[:, None]).astype(np.float32)
    dual = np.exp(-np.abs(features.sum(1) - 2.2)).astype(np.float32)
    save_file(
        {"x": np.zeros((80, 1, 4, 4), np.float32), "y": y, "task": np.zeros(80, np.int64), "id": np.arange(80),
         "dual": dual, "features": features},
        path / "memory.safetensors",
    )  # fmt: skip


def test_a_directory_without_such_runs_is_refused(tmp_path, fake_run) -> None:
    fake_run(tmp_path / "runs")
    with pytest.raises(UsageError, match="pdcl study paper --part mnist"):
        write_page([tmp_path / "runs"], tmp_path / "p.md")
