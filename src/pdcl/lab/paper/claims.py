"""The paper's claims, each with the runs that decide it.

A claim holds where its 95 % interval over shared seeds lies on the claimed side of 0 (or within the stated margin),
fails where it lies on the other side, and is undecided in between.
"""

from __future__ import annotations

from functools import partial

from pdcl.lab.paper import judging
from pdcl.lab.paper.claim import Claim, Comparison
from pdcl.lab.paper.claims_duals import OF_DUALS
from pdcl.lab.paper.judging import REPORTED, ROBUST, STREAMS
from pdcl.lab.paper.runs import SIZE
from pdcl.lab.paper.settings import SLOW, STARTED, Setting

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
    # One size of memory is no sweep.
    alone = f"{name.removeprefix('mean_')}-memory-tiny_imagenet"
    return [
        Claim(
            f"{why}: {first} over {second}, {what}, {stream}", source, part,
            alone if (stream, figure) == ("tiny_imagenet", "sweeps") else figure,
            partial(judging.beats, first, second, stream, SIZE, name), (), Comparison((first, second), stream, name),
        )
        for stream, part in (dict(zip(STREAMS, STREAMS, strict=True)) | tiny).items()
    ]  # fmt: skip


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
        Claim(f"Dual weights improve on a baseline with settings tuned for SGD: pdcl0 over {label}, accuracy, mnist",
              "Sec. 5", "reported", "variants-mnist",
              partial(judging.form_beats, ("pdcl0", {}), (f"{label}-reported", options), "mnist"))
        for label, options in REPORTED.items()
    ),
    *(
        Claim(f"Dual weights that start at 1 improve on fixed ones: {label} over er, accuracy, {stream}",
              "ours", "start", f"variants-{stream}",
              partial(Setting("", stream, options=STARTED).difference, label, "er", "mean_accuracy"))
        for stream in ("organa", "mnist")
        for label in ("pdcl0", "pdcl")
    ),
    Claim("Gradient projections are worse than replay at a tenth of the rate: er over agem, Adam .001, mnist",
          "ours", "projection", "variants-mnist",
          partial(Setting("", "mnist", options=SLOW).difference, "er", "agem", "mean_accuracy")),
    *(
        Claim(f"Balanced, mixed and clipped selection improves on {what}: pdcl-s-robust over {label}, accuracy, mnist",
              "ours", "selection", "variants-mnist",
              partial(judging.form_beats, ("pdcl-s-robust", ROBUST), (label, {}), "mnist"))
        for label, what in (("pdcl", "a uniform one"), ("pdcl-s", "the printed one"))
    ),
    *(
        Claim(says.format(label), "Sec. 5", "mnist", "sweeps",
              partial(judging.among_settings, label, name), OTHER_SIZES)
        for name, says in ALL_SETTINGS.items()
        for label in judging.COMPARED
    ),
    Claim("In some settings no method is clearly better than er", "Sec. 5", "mnist", "sweeps",
          judging.er_unbeaten, OTHER_SIZES),
    Claim("With a small memory (200) PDCL is modest: it gains less over er than with 1000, speech", "Sec. 5",
          "speech-sizes", "sweeps", judging.modest_on_small),
    Claim("With a small memory (200) selection is no gain on speech", "Sec. 5", "speech-sizes", "sweeps",
          judging.no_selection_gain),
    *OF_DUALS,
)  # fmt: skip
