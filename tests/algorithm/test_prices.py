"""Prices: Theorem 1 as arithmetic. That duals are such prices is tested on solved problems, in tests/learning/core."""

import pytest
import torch

import pdcl.duality
from pdcl.duality import price, sample_prices, value_bound


def test_the_price_of_a_change_is_linear_in_it():
    duals = torch.tensor([2.0, 0.0, 1.0])
    assert price(duals, 0.1).tolist() == pytest.approx([0.2, 0.0, 0.1])
    assert price(duals, torch.tensor([-0.1, 5.0, 0.2])).tolist() == pytest.approx([-0.2, 0.0, 0.2])


def test_the_bound_takes_many_changes_at_once():
    duals = torch.tensor([2.0, 1.0])
    assert value_bound(5.0, duals, torch.tensor([[1.0, 1.0], [-1.0, 0.0]])).tolist() == [2.0, 7.0]


def test_a_sample_costs_its_dual_over_the_size_of_its_partition():
    prices = sample_prices(torch.tensor([3.0, 1.0, 4.0]), torch.tensor([0, 2, 0]))
    assert prices.tolist() == [1.5, 1.0, 2.0]


def test_every_public_name_is_there():
    assert all(hasattr(pdcl.duality, name) for name in pdcl.duality.__all__)
