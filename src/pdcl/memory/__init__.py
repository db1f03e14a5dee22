"""The bounded store of past samples, and the rules by which samples enter it."""
