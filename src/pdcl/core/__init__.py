"""One core without a loop and without a network: constraints, memory and the rules that tie them together."""
