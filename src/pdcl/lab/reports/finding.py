"""What a table supports, in a sentence: only what paired differences over shared seeds can carry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from pdcl.lab.comparing import Group
from pdcl.metrics import Paired, paired_difference

LEVEL = 0.05
# Two seeds of one method differ by several points on the benchmarks: fewer than five are a first look.
ENOUGH = 5


@dataclass(frozen=True)
class Setting:
    """Groups that may be compared: one stream, preset and memory; those without memory take part everywhere."""

    stream: str
    preset: str
    memory: int | str | None
    groups: tuple[Group, ...]

    @property
    def place(self) -> str:
        held = f" with memory {self.memory}" if self.memory else ""
        return f"{self.stream}{held}" + (f" (preset {self.preset})" if self.preset != "auto" else "")


@dataclass(frozen=True)
class Finding:
    """One setting in words. `kind`: clear, unclear, early (few seeds), unknown (one) or alone (nothing to compare)."""

    kind: str
    leader: str
    text: str
    place: str


def settings(groups: Sequence[Group]) -> list[Setting]:
    found = []
    for (stream, preset), members in groupby(groups, lambda g: (g.first.stream, g.first.preset)):
        here = list(members)
        bare = [g for g in here if not g.first.memory]
        for memory, held in groupby((g for g in here if g.first.memory), lambda g: g.first.memory):
            found.append(Setting(stream, preset, memory, (*held, *bare)))
        if len(bare) == len(here):
            found.append(Setting(stream, preset, None, tuple(bare)))
    return found


def finding(setting: Setting) -> Finding:
    """The leader by mean accuracy, and whether it is above all others: Holm over the comparisons, at 5 %.

    Joint training sees all data at once: a ceiling, not a competitor.
    """
    ceiling = [g for g in setting.groups if g.first.method == "joint"]
    rivals = [g for g in setting.groups if g.first.method != "joint"] or ceiling
    ranked = sorted(rivals, key=lambda g: -_known(g.estimate("mean_accuracy")[0]))
    leader, others = ranked[0], ranked[1:]
    reached = f"{leader.label} reaches {_estimate(leader)} mean accuracy on {setting.place}"
    if not others:
        return Finding("alone", leader.label, f"{reached}; there is no other method to compare it with.", setting.place)
    pairs = [(other, _paired(leader, other)) for other in others]
    if all(math.isnan(pair.p) for _, pair in pairs):
        text = f"{reached}, the highest of {len(ranked)}, but one seed can't tell methods apart."
        return Finding("unknown", leader.label, text, setting.place)
    return _judged(setting, leader, pairs, reached)


def _judged(setting: Setting, leader: Group, pairs: list[tuple[Group, Paired]], reached: str) -> Finding:
    above = _holm([(other, pair.p if pair.mean > 0 else 1.0) for other, pair in pairs])
    runner, lead = pairs[0]
    by = f"{_points(lead.mean)} points above {runner.label} (95 % interval {_range(lead)}, {lead.n} shared seeds)"
    if min(pair.n for _, pair in pairs) < ENOUGH:
        text = f"{reached}, {by}; with fewer than five shared seeds this is a first look, not a finding."
        return Finding("early", leader.label, text, setting.place)
    if len(above) == len(pairs):
        return Finding("clear", leader.label, f"{reached}: {by}, and clearly above every method here.", setting.place)
    level = [other.label for other, _ in pairs if other not in above]
    text = (
        f"No method is significantly above all others on {setting.place}: {leader.label} leads with "
        f"{_estimate(leader)}, but can't be told apart from {_listed(level)}."
    )
    return Finding("unclear", leader.label, text, setting.place)


def _holm(tests: list[tuple[Group, float]]) -> list[Group]:
    """Those whose hypothesis of no difference falls when all are tested together."""
    kept: list[Group] = []
    for place, (other, p) in enumerate(sorted(tests, key=lambda test: _high(test[1]))):
        if not p * (len(tests) - place) < LEVEL:
            break
        kept.append(other)
    return kept


def headline(findings: Sequence[Finding]) -> str:
    """One sentence over all settings; where no method leads in more of them than any other, it says so."""
    if len(findings) == 1:
        return findings[0].text
    leaders = [each.leader for each in findings]
    ranked = sorted(dict.fromkeys(leaders), key=lambda name: -leaders.count(name))
    if len(ranked) > 1 and leaders.count(ranked[0]) == leaders.count(ranked[1]):
        tied = [name for name in ranked if leaders.count(name) == leaders.count(ranked[0])]
        told = _listed([f"{name} ({_sure(findings, name)})" for name in tied])
        return f"No one method leads over {len(findings)} settings (stream × memory); each highest in some: {told}."
    return (
        f"{ranked[0]} has the highest mean accuracy in {leaders.count(ranked[0])} of {len(findings)} settings "
        f"(stream × memory), {_sure(findings, ranked[0])} above every other method."
    )


def _sure(findings: Sequence[Finding], leader: str) -> str:
    """In how many of the settings that it leads a method is significantly above all others."""
    here = [each for each in findings if each.leader == leader]
    clear = sum(each.kind == "clear" for each in here)
    if len(here) == 1:
        return "significantly" if clear else "not significantly"
    return {0: "in none of them significantly", len(here): "significantly in each"}.get(
        clear, f"significantly in {clear} of them"
    )


def _paired(one: Group, other: Group) -> Paired:
    return paired_difference(one.by_seed("mean_accuracy"), other.by_seed("mean_accuracy"))


def _known(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _high(p: float) -> float:
    return math.inf if math.isnan(p) else p


def _estimate(member: Group) -> str:
    mean, half = member.estimate("mean_accuracy")
    return f"{100 * mean:.1f} %" if math.isnan(half) else f"{100 * mean:.1f} ± {100 * half:.1f} %"


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _range(paired: Paired) -> str:
    return f"{100 * paired.low:.1f} to {100 * paired.high:.1f}".replace("-", "−")


def _listed(names: Sequence[str]) -> str:
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
