"""Pages that people look at: one file with everything in it. Those of runs are made in the lab."""
