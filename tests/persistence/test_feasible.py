"""The point between old and new weights that keeps all limits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import pdcl
from pdcl.lifelong.feasible import SHARES, Between, Chosen
from pdcl.training.events import Warned


def _between(start: float, end: float) -> tuple[nn.Module, Between]:
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    nn.init.constant_(model[0].weight, start)
    between = Between(model)
    nn.init.constant_(model[0].weight, end)
    model[1].running_mean.fill_(4.0)
    model[1].num_batches_tracked.fill_(7)
    return model, between


@pytest.mark.parametrize(("limit", "share"), [(9.0, 1.0), (2.75, 0.75), (2.4, 0.5), (1.0, 0.0)])
def test_the_furthest_candidate_within_all_limits_is_taken(limit: float, share: float) -> None:
    """The weight goes from 1 to 3; what is limited is the weight itself."""
    model, between = _between(1.0, 3.0)
    seen: list[float] = []

    def excess() -> Tensor:
        seen.append(model[0].weight.item())  # type: ignore[operator, union-attr]
        return torch.tensor([seen[-1] - limit, torch.nan, -1.0])

    chosen = between.settle(model, excess, "guards")
    assert (chosen.share, chosen.kept) == (share, True)
    assert model[0].weight.item() == pytest.approx(1 + 2 * share)  # type: ignore[operator, union-attr]
    assert model[1].running_mean.item() == pytest.approx(4 * share)  # type: ignore[operator, union-attr]
    assert model[1].num_batches_tracked.item() == 7  # type: ignore[operator, union-attr]
    assert seen == pytest.approx([1 + 2 * each for each in SHARES[: SHARES.index(share) + 1]])


def test_where_no_candidate_is_within_limits_the_new_weights_stay_and_that_is_said() -> None:
    model, between = _between(1.0, 3.0)
    chosen = between.settle(model, lambda: torch.tensor([0.1]), "stored samples")
    assert not chosen.kept
    assert model[0].weight.item() == 3.0  # type: ignore[operator, union-attr]
    assert chosen.sentence == "none of 5 candidates keeps all limits on stored samples: the new weights stay"


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_what_stored_samples_vouch_for_is_doubted_and_the_way_out_is_named(share: float) -> None:
    said = Chosen(share, True, (0.0,), "stored samples").sentence
    for words in ("on stored samples", "trained on", "guard=50", "1,000 places"):
        assert words in said
    assert "trained on" not in Chosen(share, True, (0.0,), "guards").sentence


def test_feasible_without_guards_says_that_memorised_samples_vouched_for_it() -> None:
    """Off, the entry reads as if nothing had been to judge. The first task has nothing to keep, so nothing is said."""
    torch.manual_seed(0)
    x, y = torch.randn(200, 8), torch.arange(200) % 4
    learner, heard = pdcl.PDCL("mlp:8", memory=40, tolerance="+90pt"), []
    first, second = (
        learner.learn(x, y + 4 * task, epochs=1, on_violation="feasible", listener=heard.append) for task in range(2)
    )
    assert (first["result"]["candidate"]["judged_on"], "trained on" in repr(first)) == ("nothing", False)
    assert second["result"]["candidate"]["judged_on"] == "stored samples"
    assert "the new weights keep all limits on stored samples; these were trained on" in repr(second)
    assert [event.task for event in heard if isinstance(event, Warned) and "trained on" in event.message] == [1]


def test_guards_are_kept_without_being_asked_for_only_where_a_state_is_chosen_by_them() -> None:
    """`on_violation="feasible"` chooses by guards; a plain limit is judged by witnesses alone."""
    torch.manual_seed(0)
    x, y = torch.randn(400, 8), torch.randint(0, 2, (400,))
    roles = []
    for answer in ("report", "feasible"):
        learner = pdcl.PDCL("mlp:8", memory=1000, tolerance="+50pt")
        learner.learn(x, y, epochs=1, on_violation=answer)
        roles.append(torch.bincount(learner.held["role"].long(), minlength=3).tolist())
    assert roles == [[360, 0, 40], [320, 40, 40]]
