"""A learner that lives for years: learn, adopt, grow, save, export, and the lineage of all of it."""
