"""`pdcl completion bash|zsh|fish`: a script by which the shell completes commands, names and options."""

from __future__ import annotations

import contextlib
import io
import re

from pdcl.errors import UsageError
from pdcl.printable import say

ABOUT = """usage: pdcl completion bash|zsh|fish

Print a script by which your shell completes commands, streams, methods and options. Load it once:

  bash   pdcl completion bash >> ~/.bash_completion
  zsh    pdcl completion zsh >> ~/.zshrc
  fish   pdcl completion fish > ~/.config/fish/completions/pdcl.fish"""

BASH = """_pdcl() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=
  if ((COMP_CWORD == 1)); then words="{verbs}"
  else case "${{COMP_WORDS[1]}}:$word" in
{cases}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _pdcl pdcl"""
ZSH = "autoload -Uz compinit bashcompinit && compinit && bashcompinit"


def main(argv: list[str]) -> int:
    shells = {"bash": _bash, "zsh": lambda: f"{ZSH}\n{_bash()}", "fish": _fish}
    if not argv or argv[0] in ("-h", "--help"):
        say(ABOUT)
        return 0 if argv else 2
    if len(argv) > 1 or argv[0] not in shells:
        raise UsageError(f"{' '.join(argv)!r} is no shell that can be helped; one of {', '.join(shells)}")
    print(shells[argv[0]]())
    return 0


def options() -> dict[str, list[str]]:
    """The options of every command, as its own help names them."""
    from pdcl.cli import VERBS, main

    found = {}
    for verb in VERBS:
        words, said = [verb, *(("digits", "pdcl") if verb == "run" else ())], io.StringIO()
        if verb != "completion":
            with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
                main([*words, "--help"])
        # Options begin a line of help, after its frame, or follow another one and a comma.
        lines = re.findall(r"^│? *((?:-\w \S+, )?(?:-h, )?--[\w-]+.*)", said.getvalue(), re.MULTILINE)
        found[verb] = sorted({name for line in lines for name in re.findall(r"(?<!\S)--[a-z][a-z-]+", line)})
    return found


def names() -> dict[str, list[str]]:
    """The words that may follow a command, where they are known: streams and methods, parts of `data`, shells."""
    from pdcl.laboratory import lab
    from pdcl.methods.catalog import methods
    from pdcl.streams.catalog import built_in

    streams = sorted(entry.name for entry in built_in())
    return {
        "run": [*streams, *methods()],
        "tolerance": streams,
        "data": ["list", "fetch", "verify"],
        "study": list(lab("studies").shipped()),
        "completion": ["bash", "zsh", "fish"],
    }


def _bash() -> str:
    from pdcl.cli import VERBS

    cases = [f'    {verb}:-*) words="{" ".join(words)}" ;;' for verb, words in options().items()]
    cases += [f'    {verb}:*) words="{" ".join(words)}" ;;' for verb, words in names().items()]
    return BASH.format(verbs=" ".join(VERBS), cases="\n".join(cases))


def _fish() -> str:
    from pdcl.cli import VERBS

    first, after = "__fish_use_subcommand", "__fish_seen_subcommand_from {}"
    lines = [
        f"complete -c pdcl -f -n {first} -a {verb} -d '{what.replace(chr(39), '’')}'" for verb, what in VERBS.items()
    ]
    for verb, words in options().items():
        lines += [f"complete -c pdcl -n '{after.format(verb)}' -l {word[2:]}" for word in words]
    for verb, words in names().items():
        lines.append(f"complete -c pdcl -n '{after.format(verb)}' -a '{' '.join(words)}'")
    return "\n".join(lines)
