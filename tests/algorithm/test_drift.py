"""The drift of outputs from those that were recorded, and how far records are softened."""

import pytest
import torch

from pdcl.algorithm.drift import drift_of, sharpness


@pytest.mark.parametrize(
    ("stored", "samples", "expected"),
    [(0, 60, 1.0), (10, 60, 1.0), (25, 60, 0.7), (40, 60, 0.4), (60, 60, 0.4), (20, 0, 1.0)],
)
def test_records_are_whole_up_to_a_sixth_and_softened_most_from_two_thirds_on(stored, samples, expected):
    found = sharpness(torch.tensor([stored]), torch.tensor([samples]), soften=0.6)
    assert found.tolist() == pytest.approx([expected])


def test_only_outputs_with_a_record_drift_and_only_they_have_a_gradient():
    """Two outputs of two entries: 3² + 1² over two; 2² over one; nothing over none."""
    nan = torch.nan
    recorded = torch.tensor([[[1.0, 2.0], [nan, nan]], [[nan, 2.0], [nan, nan]], [[nan, nan], [nan, nan]]])
    outputs = torch.tensor([[[4.0, 3.0], [9.0, 9.0]]] * 3)
    outputs[1, 0, 1] = 4.0
    found = drift_of(outputs.requires_grad_(), recorded)
    assert found.tolist() == [5.0, 4.0, 0.0]
    found.sum().backward()
    assert outputs.grad.flatten(1).tolist() == [[3.0, 1.0, 0, 0], [0, 4.0, 0, 0], [0, 0, 0, 0]]
