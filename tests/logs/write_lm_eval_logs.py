"""Writes tests/logs/files/lm_eval_{before,after}: lm-eval 0.4.13 on a local task with a model of a few lines."""

import sys
import tempfile
from pathlib import Path

import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

HERE = Path(__file__).parent / "files"
TASK = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


class Sums(LM):
    """Adds two numbers, wrongly where the first can be divided by `wrong`."""

    def __init__(self, wrong: int) -> None:
        super().__init__()
        self.wrong = wrong

    def generate_until(self, requests, disable_tqdm=False):
        numbers = [tuple(map(int, each.args[0].removesuffix(" =").split(" + "))) for each in requests]
        return [str(a + b + (a % self.wrong == 0)) for a, b in numbers]

    def loglikelihood(self, requests, disable_tqdm=False):
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        data, task = Path(place) / "sums.jsonl", Path(place) / "sums.yaml"
        rows = [f'{{"question": "{a} + {a * 7 % 30} =", "answer": "{a + a * 7 % 30}"}}\n' for a in range(1, 61)]
        data.write_text("".join(rows))
        task.write_text(TASK.format(data=data))
        for name, wrong in (("before", 7), ("after", 4)):
            tracker = EvaluationTracker(output_path=str(HERE / f"lm_eval_{name}"))
            manager = TaskManager(include_path=place, include_defaults=False)
            found = lm_eval.simple_evaluate(
                Sums(wrong), tasks=["sums"], task_manager=manager, log_samples=True, bootstrap_iters=0
            )
            samples = found.pop("samples")
            tracker.general_config_tracker.model_name_sanitized = "sums-model"
            tracker.save_results_aggregated(results=found, samples=samples)
            tracker.save_results_samples("sums", samples["sums"])


if __name__ == "__main__":
    sys.exit(main())
