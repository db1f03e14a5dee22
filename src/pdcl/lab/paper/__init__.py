"""The paper held to runs: each of its claims as code, and the page that lists them."""
