"""The registered models at a scale: of what each is pretrained, and its pretraining, in one process or many.

    python -m lib.study.pretrained SCALE MODEL

pretrains one from the command line; started by torchrun, on many processes, GPUs or nodes.
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
        """How it is pretrained; StudyError where the scale cannot do it."""
        return params.load_pretraining(self.key, self.study.scale)

    @property
    def machine(self) -> Machine:
        budget = self.budget.pretraining.model_dump(include={"micro_batch", "compile", "workers"})
        return self.study.machine.model_copy(update=budget)

    @property
    def processes(self) -> int:
        """As many as the scale says, or one a GPU."""
        return self.budget.processes or max(1, torch.cuda.device_count())

    @property
    def folder(self) -> Path:
        return paths.model(self.study.scale, self.key)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.study.vocabulary(self.settings.vocabulary)

    @property
    def corpora(self) -> list[Corpus]:
        """What it is trained on, those of its core first."""
        return [self.study.corpus(key) for key in self.settings.corpora]

    @property
    def trained_on(self) -> dict[str, bool]:
        """The corpora that it and the models that it continues were trained on, and whether its weights started from
        word vectors of each, which no budget counts."""
        earlier = self.study.model(self.settings.initial).trained_on if self.settings.initial else {}
        return earlier | dict.fromkeys(self.settings.corpora, "word vectors" in self.plan.start)

    @property
    def configs(self) -> tuple[PretrainedConfig, PretrainedConfig | None]:
        """The configuration of its encoder, and of ELECTRA's generator."""
        plan, size = self.plan, self.vocabulary.recipe["size"]
        return configure(self.settings.architecture, plan.body, size, plan.positions, plan.dropout)

    def count_work(self, **changes: int) -> dict[str, float]:
        """Steps, tokens (padding too) and FLOPs of its pretraining, without that of the model that it continues.

        FLOPs are those of lib/modeling/costs.py: matrix products that are needed. The papers' code computes the whole
        of the last layer, which is a little more. `changes`: settings that replace those of every phase.
        """
        plan, (config, generator) = self.plan, self.configs
        work = {"steps": 0, "tokens": 0, "flops": 0.0}
        for phase in plan.phases or self.settings.published.phases:  # none where the text is not public
            phase = phase.model_copy(update=changes)
            predicted = pretraining.make_masking(plan, plan.masked_share, phase.max_predictions).slots(phase.length)
            rows = phase.steps * phase.batch_size
            work["steps"] += phase.steps
            work["tokens"] += rows * phase.length
            work["flops"] += rows * costs.training_flops(config, phase.length, predicted, generator)
        passes = objectives.ADVERSARIAL_PASSES if self.settings.adversarial else 1
        return work | {"flops": passes * work["flops"]}

    def packed(self, split: str = "train") -> list[Tokens]:
        """Its text in tokens of its vocabulary; StudyError as in Vocabulary.packed."""
        return [self.vocabulary.packed(corpus, split) for corpus in self.corpora]

    def batches(self) -> pretraining.Phases:
        """The batches that it is trained on."""
        return pretraining.make_batches(self.plan, self.packed(), self.vocabulary.tokenizer(), self.seed)

    def held_out(self) -> Blocks:
        """The batches on which its loss is measured."""
        wanted = self.budget.pretraining.held_out_blocks
        return pretraining.make_held_out(self.plan, self.packed("held_out"), self.vocabulary.tokenizer(), wanted)

    @property
    def identity(self) -> dict:
        """All that its weights follow from; known before corpora are packed and word vectors made.

        StudyError for a model that cannot be pretrained from what is at hand: its weights would be random ones.
        """
        model = self.settings
        if model.not_run:
            raise StudyError(f"model '{self.key}' cannot be pretrained here: {model.not_run}")
        inputs = {"vocabulary": self.vocabulary.fingerprint}
        inputs |= {corpus.key: corpus.record["content"] for corpus in self.corpora}
        if model.initial:
            initial = self.study.encoder(model.initial)
            inputs["initial weights"] = initial.fingerprint or initial.load().fingerprint
        resolved = pretraining.settle_settings(self.plan, self.machine, self.seed, self.processes)
        settings = resolved | params.identify_weights(self.key, self.study.scale)
        return provenance.record("pretraining", self.plan.version, settings, inputs)

    def pretrain(self) -> dict:
        """Pretrain it unless it is there already, in as many processes as the scale asks for.

        Returns its record, with its log. Its folder is whole or not there; a run that was killed goes on from its
        checkpoint.
        """
        if finished := artefacts.find_finished(self.folder, self.identity):
            return finished | {"log": pretraining.read_log(self.folder)}
        if self.processes == 1:
            return self.train()
        for corpus in self.corpora:  # once, and not in every process
            self.vocabulary.pack(corpus)
        launch(self)
        return artefacts.read_record(self.folder) | {"log": pretraining.read_log(self.folder)}

    def train(self) -> dict | None:
        """The same in this process, or in its share of a run started by torchrun, whose first alone returns it."""
        model, plan, record = self.settings, self.plan, self.identity
        initial = self.study.encoder(model.initial).load() if model.initial else None
        wanted = plan.phases and "word vectors" in plan.start
        vectors, seconds = self.find_vectors() if wanted else (None, 0)
        short = sum(self.vocabulary.pack(corpus)["left out"] for corpus in self.corpora)
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
            record=record | {"seconds of the start": seconds, "documents too short": short},
            title=model.title,
            note=f"Where it differs from the published model: {model.differs}",
        )

    def find_vectors(self) -> tuple[np.ndarray, int]:
        """Word vectors of its text, (vocabulary, width), and the seconds that they took.

        Made once for all models of one text, vocabulary and width.
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
            begun = time.monotonic()
            np.save(new / "vectors.npy", embeddings.make_vectors(self.packed(), size, width))
            return {"seconds": round(time.monotonic() - begun)}

        folder = paths.vectors(self.study.scale, self.settings.corpora, self.vocabulary.key, width)
        record = artefacts.cached(folder, identity, write)
        return np.load(folder / "vectors.npy"), record["seconds"]


def launch(model: Model) -> None:
    """Train in processes of their own on this machine; what they print is passed on."""
    start = "from lib import parent; parent.watch(); from torch.distributed.run import main; main()"
    command = [sys.executable, "-c", start, "--standalone", f"--nproc-per-node={model.processes}"]
    ran = subprocess.Popen(
        [*command, "-m", "lib.study.pretrained", model.study.scale, model.key],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    last = ""
    for line in ran.stdout:
        print(line, end="", flush=True)
        last = line.strip() if line.startswith("error: ") else last
    if ran.wait():
        raise StudyError(
            last.removeprefix("error: ") or f"{model.processes} processes of pretraining ended with {ran.returncode}"
        )


def main(words: Sequence[str]) -> int:
    """Pretrain the model that the words name: scale, key. The exit status."""
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
