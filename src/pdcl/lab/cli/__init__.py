"""Commands of the lab, one file each, in which `pdcl VERB` looks for what isn't among its own."""
