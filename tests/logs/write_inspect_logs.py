"""Writes tests/logs/files/inspect_{before,after}: Inspect 0.3.285 with its mock model, two epochs, offline."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import tiktoken
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import match

# Its own table of tokens would be downloaded.
tiktoken.get_encoding = lambda name: type("Words", (), {"encode": staticmethod(lambda text, **more: text.split())})()
HERE = Path(__file__).parent / "files"


def main() -> None:
    samples = [
        Sample(id=a, input=f"{a} + {b} =", target=str(a + b), metadata={"level": "odd" if a % 2 else "even"})
        for a, b in ((a, a * 7 % 30) for a in range(1, 21))
    ]
    for name, wrong in (("before", 7), ("after", 4)):

        def answer(messages, tools, choice, config, wrong=wrong):
            a, b = map(int, messages[-1].text.removesuffix(" =").split(" + "))
            return ModelOutput.from_content("mockllm", str(a + b + (a % wrong == 0)))

        model = get_model("mockllm/model", custom_outputs=answer)
        for ending in ("eval", "json"):
            with tempfile.TemporaryDirectory() as place:
                task = Task(dataset=MemoryDataset(samples), scorer=match(), epochs=2, name="sums")
                eval(task, model=model, log_dir=place, log_format=ending, display="none", log_realtime=False)
                (made,) = Path(place).glob(f"*.{ending}")
                shutil.copy(made, HERE / f"inspect_{name}.{ending}")


if __name__ == "__main__":
    os.environ["INSPECT_LOG_LEVEL"] = "warning"
    sys.exit(main())
