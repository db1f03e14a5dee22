"""The paper's claims, each with the runs that decide it.

A claim holds where its 95 % interval over shared seeds lies on the claimed side of 0 (or within the stated margin),
fails where it lies on the other side, and is undecided in between.
"""

from __future__ import annotations

from functools import partial

from pdcl.lab.paper import judging
from pdcl.lab.paper.claim import Claim, Comparison
from pdcl.lab.paper.claims_duals import OF_DUALS
from pdcl.lab.paper.judging import STREAMS
from pdcl.lab.paper.runs import SIZE

# Of claims about all settings: every benchmark at every size of memory, the first part apart.
OTHER_SIZES = ("mnist-sizes", "speech", "speech-sizes", "organa", "organa-sizes", "tiny")
ALL_SETTINGS = {
    "mean_accuracy": "High accuracy in almost all settings: pdcl above {} beyond its interval",
    "mean_forgetting": "Low forgetting in almost all settings: pdcl below {} beyond its interval",
}


def _better(first: str, second: str, why: str, source: str, figure: str, name: str = "mean_accuracy") -> list[Claim]:
    """`first` beats `second` at memory 500, on every stream that has both."""
    what = "accuracy" if name == "mean_accuracy" else "less forgetting"
    tiny = {} if "er-ring" in (first, second) else {"tiny_imagenet": "tiny"}
    return [
        Claim(
            f"{why}: {first} over {second}, {what}, {stream}",
            source,
            part,
            # One size of memory is no sweep.
            f"{name.removeprefix('mean_')}-memory-{stream}"
            if (stream, figure) == ("tiny_imagenet", "sweeps")
            else figure,
            partial(judging.beats, first, second, stream, SIZE, name),
            compares=Comparison((first, second), stream, name),
        )
        for stream, part in (dict(zip(STREAMS, STREAMS, strict=True)) | tiny).items()
    ]


CLAIMS: tuple[Claim, ...] = (
    *_better("pdcl0", "er", "Dual weights improve on fixed ones", "Fig. 3, Sec. 5", "partitioning"),
    *_better("pdcl0", "er-ring", "Dual weights improve on fixed ones", "Fig. 3", "partitioning"),
    *_better("pdcl0", "er", "Dual weights forget less", "Sec. 5", "sweeps", "mean_forgetting"),
    *_better("pdcl", "pdcl0", "Partition by dual improves on a uniform one", "Fig. 3, Sec. 5", "partitioning"),
    *_better("pdcl", "er-ring", "Partition by dual improves on a uniform one", "Fig. 3", "partitioning"),
    *_better("pdcl", "agem", "Partition by dual improves on a uniform one", "Fig. 3", "partitioning"),
    *_better("pdcl", "pdcl0", "Partition by dual forgets less", "Sec. 5", "sweeps", "mean_forgetting"),
    *_better("pdcl-s", "pdcl", "Selection by dual improves on a uniform one", "Sec. 5", "sweeps"),
    *_better("pdcl-s", "pdcl", "Selection by dual forgets less", "Sec. 5", "sweeps", "mean_forgetting"),
    *_better("er", "agem", "Gradient projections are worse than replay", "Fig. 3", "partitioning"),
    *_better("pdcl0", "agem", "Gradient projections are worse than replay", "Fig. 3", "partitioning"),
    *(
        Claim(
            f"Dual weights improve on a baseline with settings tuned for SGD: pdcl0 over {label}, accuracy, mnist",
            "Sec. 5",
            "reported",
            "variants-mnist",
            partial(judging.beats_reported, "pdcl0", label),
        )
        for label in judging.REPORTED
    ),
    *(
        Claim(
            f"Dual weights that start at 1 improve on fixed ones: {label} over er, accuracy, {stream}",
            "ours",
            "start",
            f"variants-{stream}",
            partial(judging.started_beats, label, "er", stream, "mean_accuracy"),
        )
        for stream in ("organa", "mnist")
        for label in ("pdcl0", "pdcl")
    ),
    Claim(
        "Gradient projections are worse than replay at a tenth of the rate: er over agem, Adam .001, mnist",
        "ours",
        "projection",
        "variants-mnist",
        partial(judging.better_at_small_rate, "er", "agem"),
    ),
    Claim(
        "Balanced, mixed and clipped selection improves on a uniform one: pdcl-s-robust over pdcl, accuracy, mnist",
        "ours",
        "selection",
        "variants-mnist",
        partial(judging.robust_beats, "pdcl"),
    ),
    Claim(
        "Balanced, mixed and clipped selection improves on the printed one: pdcl-s-robust over pdcl-s, accuracy, mnist",
        "ours",
        "selection",
        "variants-mnist",
        partial(judging.robust_beats, "pdcl-s"),
    ),
    *(
        Claim(
            says.format(label),
            "Sec. 5",
            "mnist",
            "sweeps",
            partial(judging.among_settings, label, name),
            OTHER_SIZES,
        )
        for name, says in ALL_SETTINGS.items()
        for label in judging.COMPARED
    ),
    Claim(
        "In some settings no method is clearly better than er",
        "Sec. 5",
        "mnist",
        "sweeps",
        judging.er_unbeaten,
        OTHER_SIZES,
    ),
    Claim(
        "With a small memory (200) PDCL is modest: it gains less over er than with 1000, speech",
        "Sec. 5",
        "speech-sizes",
        "sweeps",
        judging.modest_on_small,
    ),
    Claim(
        "With a small memory (200) selection is no gain on speech",
        "Sec. 5",
        "speech-sizes",
        "sweeps",
        judging.no_selection_gain,
    ),
    *OF_DUALS,
)
