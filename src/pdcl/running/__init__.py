"""Run, load, resume: names and presets to a stream and a learner, then the loop."""
