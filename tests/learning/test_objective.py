"""One loss per sample, whatever the shape of its target."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from pdcl.errors import UsageError
from pdcl.objective import OBJECTIVES
from pdcl.ragged import Ragged

TOKENS = OBJECTIVES["tokens"]


def by_hand(outputs, targets):
    """Loss and error of one sample: means over tokens that have a class."""
    there = [place for place in range(len(targets)) if targets[place] != -100]
    if not there:
        return 0.0, 0.0
    losses = [float(cross_entropy(outputs[place][None], targets[place][None])) for place in there]
    wrong = [float(outputs[place].argmax() != targets[place]) for place in there]
    return sum(losses) / len(there), sum(wrong) / len(there)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 99))
def test_a_samples_loss_is_the_mean_over_its_unmasked_tokens(lengths, classes, seed):
    random = torch.Generator().manual_seed(seed)
    targets = [torch.randint(-1, classes, (count,), generator=random) for count in lengths]
    targets = [torch.where(each < 0, -100, each) for each in targets]
    outputs = torch.randn(
        len(lengths), max(1, *lengths) if len(lengths) > 1 else max(1, lengths[0]), classes, generator=random
    )
    expected = [by_hand(out, target) for out, target in zip(outputs, targets, strict=True)]
    ragged = Ragged(torch.cat(targets), torch.tensor(lengths))
    for given_as in (ragged, ragged.padded(-100)):
        assert TOKENS.loss(outputs, given_as).tolist() == pytest.approx([loss for loss, _ in expected], abs=1e-5)
        assert TOKENS.error(outputs, given_as).tolist() == pytest.approx([error for _, error in expected])
        assert torch.equal(TOKENS.score(outputs, given_as), 1 - TOKENS.error(outputs, given_as))


def test_what_a_sequence_is_padded_with_says_nothing():
    targets = Ragged.of([[0, 1], [1]])
    outputs = torch.randn(2, 2, 3)
    wider = torch.cat([outputs, 1e3 * torch.randn(2, 5, 3)], 1)
    assert torch.allclose(TOKENS.loss(outputs, targets), TOKENS.loss(wider, targets))


def test_a_sample_whose_tokens_are_all_masked_moves_nothing():
    outputs = torch.randn(2, 3, 4, requires_grad=True)
    losses = TOKENS.loss(outputs, torch.tensor([[-100] * 3, [1, -100, 2]]))
    losses.sum().backward()
    assert losses[0] == 0
    assert not outputs.grad[0].any()
    assert outputs.grad[1, 0].any()
    assert not outputs.grad[1, 1].any()


def test_masks_of_images_have_their_classes_second():
    outputs, targets = torch.randn(2, 3, 4, 5), torch.randint(0, 3, (2, 4, 5))
    expected = cross_entropy(outputs, targets, reduction="none").flatten(1).mean(1)
    assert torch.allclose(TOKENS.loss(outputs, targets), expected)


def test_outputs_for_other_tokens_are_refused_with_both_shapes():
    with pytest.raises(UsageError, match=r"\(2, 3, 4\) don't fit targets \(2, 5\)"):
        TOKENS.loss(torch.randn(2, 3, 4), torch.zeros(2, 5).long())
