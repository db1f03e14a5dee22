"""Evaluation logs of any model: one score per answer, paired by item. Nothing here knows torch or a learner."""
