"""The loop over the learner contract: order, epochs, events, evaluation, state."""
