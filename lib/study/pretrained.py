"""The registered models at a scale: what each is pretrained on, and its pretraining, in one process or many.

    python -m lib.study.pretrained SCALE MODEL

pretrains one model from the command line; under torchrun, on many processes, GPUs or nodes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import PretrainedConfig

from lib import artefacts, parent, provenance
from lib.errors import StudyError
from lib.modeling import costs
from lib.modeling.models import configure
from lib.pretraining import embeddings, objectives, pretraining
from lib.pretraining.blocks import Blocks
from lib.pretraining.plan import Pretraining
from lib.pretraining.tokens import Tokens
from lib.study import open_study, params, paths
from lib.study.corpora import Corpus
from lib.study.vocabularies import Vocabulary
from lib.training.optimization import Machine


class Model(params.Registered):
    kind = "models"

    @property
    def budget(self) -> params.Scale:
        return self.study.budget

    @property
    def seed(self) -> int:
        return params.list_seeds(self.key, self.study.scale)[0]

    @property
    def plan(self) -> Pretraining:
        """The settings of its pretraining. Raises StudyError if the scale cannot pretrain it."""
        return params.load_pretraining(self.key, self.study.scale)

    @property
    def machine(self) -> Machine:
        settings = self.budget.pretraining.model_dump(include={"micro_batch", "compile", "workers"})
        return self.study.machine.model_copy(update=settings)

    @property
    def processes(self) -> int:
        """The number of processes: as the scale says, else one per GPU."""
        return self.budget.processes or max(1, torch.cuda.device_count())

    @property
    def folder(self) -> Path:
        return paths.model(self.study.scale, self.key)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.study.vocabulary(self.settings.vocabulary)

    @property
    def corpora(self) -> list[Corpus]:
        """The corpora it is trained on, those of its core first."""
        return [self.study.corpus(key) for key in self.settings.corpora]

    @property
    def trained_on(self) -> dict[str, bool]:
        """The corpora that it and the models it continues were trained on.

        True where weights started from word vectors of the corpus, which no budget counts.
        """
        earlier = self.study.model(self.settings.initial).trained_on if self.settings.initial else {}
        return earlier | dict.fromkeys(self.settings.corpora, "word vectors" in self.plan.start)

    @property
    def configs(self) -> tuple[PretrainedConfig, PretrainedConfig | None]:
        """The configurations of its encoder and, for ELECTRA, of the generator."""
        plan, size = self.plan, self.vocabulary.recipe["size"]
        return configure(self.settings.architecture, plan.body, size, plan.positions, plan.dropout)

    def count_work(self, **changes: int) -> dict[str, float]:
        """Count steps, tokens (with padding) and FLOPs of its pretraining, without those of the model it continues.

        FLOPs are those of lib/modeling/costs.py: only the matrix products that are needed. The papers' code computes
        the whole last layer, which is slightly more. `changes`: settings that replace those of every phase.
        """
        plan, (config, generator) = self.plan, self.configs
        work = {"steps": 0, "tokens": 0, "flops": 0.0}
        for phase in plan.phases or self.settings.published.phases:  # plan.phases is empty if the text is not public
            phase = phase.model_copy(update=changes)
            slots = pretraining.make_masking(plan, plan.masked_share, phase.max_predictions).slots(phase.length)
            rows = phase.steps * phase.batch_size
            work["steps"] += phase.steps
            work["tokens"] += rows * phase.length
            work["flops"] += rows * costs.training_flops(config, phase.length, slots, generator)
        passes = objectives.ADVERSARIAL_PASSES if self.settings.adversarial else 1
        return work | {"flops": passes * work["flops"]}

    def packed(self, split: str = "train") -> list[Tokens]:
        """Return its text as tokens of its vocabulary. Raises StudyError as Vocabulary.packed does."""
        return [self.vocabulary.packed(corpus, split) for corpus in self.corpora]

    def batches(self) -> pretraining.Phases:
        """Return the batches that it is trained on."""
        return pretraining.make_batches(self.plan, self.packed(), self.vocabulary.tokenizer(), self.seed)

    def held_out(self) -> Blocks:
        """Return the batches on which its held-out loss is measured."""
        n_blocks = self.budget.pretraining.held_out_blocks
        return pretraining.make_held_out(self.plan, self.packed("held_out"), self.vocabulary.tokenizer(), n_blocks)

    @property
    def identity(self) -> dict:
        """Everything that determines its weights, known before corpora are packed and word vectors made.

        Raises StudyError if the model cannot be pretrained from the data at hand: its weights would be random.
        """
        model = self.settings
        if model.not_run:
            raise StudyError(f"model '{self.key}' cannot be pretrained here: {model.not_run}")
        inputs = {"vocabulary": self.vocabulary.fingerprint}
        inputs |= {corpus.key: corpus.record["content"] for corpus in self.corpora}
        if model.initial:
            initial = self.study.encoder(model.initial)
            inputs["initial weights"] = initial.fingerprint or initial.load().fingerprint
        run_settings = pretraining.settle_settings(self.plan, self.machine, self.seed, self.processes)
        settings = run_settings | params.identify_weights(self.key, self.study.scale)
        return provenance.record("pretraining", self.plan.version, settings, inputs)

    def pretrain(self) -> dict:
        """Pretrain it in as many processes as the scale asks for, unless it is there already.

        Returns its record, with its log. Its folder is whole or not there; a killed run resumes from its checkpoint.
        """
        if record := pretraining.find_pretrained(self.folder, self.identity):
            return record
        if self.processes == 1:
            return self.train()
        for corpus in self.corpora:  # here, so that it is done once and not in every process
            self.vocabulary.pack(corpus)
        launch(self)
        return artefacts.read_record(self.folder) | {"log": pretraining.read_log(self.folder)}

    def train(self) -> dict | None:
        """Pretrain it in this process, or do its share of a torchrun job; only the first process returns the record."""
        model, plan, record = self.settings, self.plan, self.identity
        initial = self.study.encoder(model.initial).load() if model.initial else None
        needs_vectors = plan.phases and "word vectors" in plan.start
        vectors, seconds = self.find_vectors() if needs_vectors else (None, 0)
        n_short = sum(self.vocabulary.pack(corpus)["left out"] for corpus in self.corpora)
        return pretraining.pretrain(
            plan,
            self.packed(),
            self.vocabulary.tokenizer(),
            self.folder,
            self.machine,
            seed=self.seed,
            held_out=self.packed("held_out"),
            initial=initial,
            vectors=vectors,
            evaluations=self.budget.pretraining.evaluations,
            held_out_blocks=self.budget.pretraining.held_out_blocks,
            record=record | {"seconds of the start": seconds, "documents too short": n_short},
            title=model.title,
            note=f"Where it differs from the published model: {model.differs}",
        )

    def find_vectors(self) -> tuple[np.ndarray, int]:
        """Return word vectors of its text, (vocabulary, width), and the seconds that they took.

        They are made once for all models of the same text, vocabulary and width.
        """
        size, width = len(self.vocabulary.tokenizer()), self.plan.embedding_width
        identity = provenance.record(
            "word vectors",
            embeddings.VERSION,
            {"width": width, "limit": embeddings.TOKENS_EACH * size},
            {corpus.key: corpus.record["content"] for corpus in self.corpora}
            | {"vocabulary": self.vocabulary.fingerprint},
        )

        def write(new: Path) -> dict:
            start_time = time.monotonic()
            np.save(new / "vectors.npy", embeddings.make_vectors(self.packed(), size, width))
            return {"seconds": round(time.monotonic() - start_time)}

        folder = paths.vectors(self.study.scale, self.settings.corpora, self.vocabulary.key, width)
        record = artefacts.cached(folder, identity, write)
        return np.load(folder / "vectors.npy"), record["seconds"]


def launch(model: Model) -> None:
    """Train in separate processes on this machine and pass on what they print. Raises StudyError if they fail."""
    code = "from lib import parent; parent.watch(); from torch.distributed.run import main; main()"
    command = [sys.executable, "-c", code, "--standalone", f"--nproc-per-node={model.processes}"]
    process = subprocess.Popen(
        [*command, "-m", "lib.study.pretrained", model.study.scale, model.key],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    message = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        message = line.strip() if line.startswith("error: ") else message
    if process.wait():
        raise StudyError(
            message.removeprefix("error: ")
            or f"{model.processes} processes of pretraining ended with {process.returncode}"
        )


def main(words: Sequence[str]) -> int:
    """Pretrain the model that `words` name: scale, key. Return the exit status."""
    if len(words) != 2:
        print("usage: python -m lib.study.pretrained SCALE MODEL", file=sys.stderr)
        return 2
    if "WORLD_SIZE" in os.environ:  # torchrun's processes outlive it when it is killed
        parent.watch()
    try:
        scale, key = words
        Model(key, open_study(scale)).train()
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
