"""A scale of the study, opened: what stands behind each key, as objects."""

from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lib import artefacts, provenance
from lib.benchmarks import registry
from lib.benchmarks.datasets import Dataset
from lib.corpora.mesh import Mesh
from lib.errors import StudyError
from lib.finetuning.protocol import FinetuningSettings
from lib.study import own_sets, params, paths, requests
from lib.training.optimization import Machine

if TYPE_CHECKING:  # pandas, tokenizers and torch, which they import, take a while
    import pandas as pd
    from matplotlib.figure import Figure

    from lib.finetuning.finetuning import Finetuning
    from lib.modeling.models import Checkpoint
    from lib.study.corpora import Corpus
    from lib.study.pretrained import Model
    from lib.study.vocabularies import Vocabulary

# Two releases of MeSH below the data folder; a descriptor has the tree numbers of both.
MESH = "corpora/mesh/mesh2017-tree.tsv.gz", "corpora/mesh/mesh2015-tree-numbers.tsv.gz"
read_mesh = cache(Mesh.read)


@dataclass(frozen=True)
class Study:
    """Opening it reads nothing but the scale's budget; all else is read when it is asked for."""

    scale: str

    def __post_init__(self):
        params.load("scales", self.scale)

    @property
    def budget(self) -> params.Scale:
        return params.load("scales", self.scale)

    @property
    def outside_budget(self) -> str:
        """What is said of a run or a set that the budget leaves out."""
        return f"outside the budget of scale '{self.scale}'"

    @cached_property
    def cells(self) -> dict[str, list[dict]]:
        """The cells of the tables that were asked for, by key: published.list_lines makes those of each once."""
        return {}

    @property
    def data(self) -> Path:
        """The folder of raw data, which need not be there."""
        return paths.data(self.scale)

    @property
    def mesh_tables(self) -> tuple[Path, ...]:
        """The tables of MeSH's descriptors that are in the data folder."""
        return tuple(path for name in MESH if (path := self.data / name).is_file())

    @property
    def mesh(self) -> Mesh:
        """MeSH's descriptors, of as many releases as are in the data folder; StudyError for a malformed table."""
        return read_mesh(self.mesh_tables)

    def corpus(self, key: str) -> "Corpus":
        """A registered corpus; StudyError with the nearest names for no such one."""
        from lib.study.corpora import Corpus

        return Corpus(key, self)

    def vocabulary(self, key: str) -> "Vocabulary":
        """A registered vocabulary; StudyError with the nearest names for no such one."""
        from lib.study.vocabularies import Vocabulary

        return Vocabulary(key, self)

    def dataset(self, key: str) -> Dataset:
        """A registered dataset where its files lie at this scale, or that of a folder given to `evaluate --data`;
        StudyError with the nearest names for no such one."""
        if key not in registry.DATASETS and own_sets.is_own(self.scale, key):
            return own_sets.find_own(self.scale, key)
        dataset = registry.lookup(key)
        how = f"./run_all.sh data {dataset.group} fetches it or says how to get it" if dataset.group else ""
        return dataset.at(self.data, how)

    @property
    def machine(self) -> Machine:
        return Machine(precision=self.budget.precision, threads=self.budget.threads)

    def model(self, key: str) -> "Model":
        """A registered model, to pretrain; StudyError with the nearest names for no such one.

        One that is pretrained again, `pubmedbert.2`, continues models of its own seed. Word vectors that a model starts
        from are those of its text, for all seeds.
        """
        from lib.study.pretrained import Model

        return Model(key, self)

    def encoder(self, name: str) -> "Checkpoint":
        """A pretrained model: a registered key, a folder or a name on the hub; StudyError as in models.find."""
        from lib.study import encoders

        return encoders.find_model(self, name)

    def protocol(self, key: str, dataset: str) -> FinetuningSettings:
        """How a dataset is fine-tuned on under a protocol, with what the budget changes of it; StudyError for none."""
        return params.load_finetuning(key, dataset, self.dataset(dataset).family, self.scale)

    def published(self, table: str) -> "pd.DataFrame":
        """A published table or figure of scores: a line for each printed cell and dataset, with the run that stands for
        it.

        Columns: row, column, metric, published, published_std; model, dataset, protocol, score; group (of the datasets
        that a mean is of), is_mean; why_not (it has no run here), substituted (what its run has in place of what the
        paper names), differs (how its dataset is another than the paper's). Columns that only we have are there without
        a printed number. A figure also has `side` (`than` for lines whose score is subtracted), and `x` and
        `published_x`, where our run and the paper's stand on its axis.
        What can be run is as it was when a table was first asked for. StudyError with the nearest names.
        """
        from lib.study import published

        return published.tabulate_cells(self, table)

    def results(self, own: bool = False) -> "pd.DataFrame":
        """Every score of every run at this scale, made here or in the record; neither data nor weights are needed.

        `own`: on data of one's own too.
        Columns: model, pretraining (its seed), dataset, protocol, seed, fold, train (its instances), device (on what an
        encoder was computed, and how precisely), score, value.
        """
        from lib.study import results

        return results.list_scores(self.scale, own)

    def baselines(self) -> "pd.DataFrame":
        """What datasets score without an encoder, of page 15 here or of the record; no lines where neither is there.

        Columns: dataset, score; chance, without_pretraining, unlabelled_text (classes of its words in a CRF): the best
        of the methods tried, on the test set.
        """
        from lib.study import results

        return results.read_baselines(self.scale)

    def save(self, name: str, what: "pd.DataFrame | Figure") -> None:
        """Keep a page's table or figure below outputs/<scale>/; a published table gets the columns of the record.

        Nothing is written where there are no data: the page then shows what the record holds.
        """
        from lib.study import figures, results

        if not self.data.is_dir():
            return
        if isinstance(what, figures.Figure):
            figures.save(what, paths.figure(self.scale, name))
        else:
            results.write_table(self.scale, name, what)

    def keep(self, name: str, table: "pd.DataFrame") -> "pd.DataFrame":
        """Save a table; what a page shows of it: the same, or without the scale's data that of the record."""
        from lib.study import results

        return results.computed(paths.table(self.scale, name), self.scale, lambda: table)

    def why_missing(self, dataset: str, protocol: str = "") -> str:
        """Why some split of a dataset cannot be read, or an empty string when all can.

        With a protocol, also of the set on which it fine-tunes before this one.
        """
        found = self.dataset(dataset)
        reasons = found.missing
        if not reasons:
            first = protocol and self.protocol(protocol, dataset).first_on
            reason = self.why_missing(first) if first else ""
            return f"{protocol} fine-tunes on {first} first: {reason}" if reason else ""
        some = f"the {' and '.join(reasons)} split{'s are' if len(reasons) > 1 else ' is'} not at hand: "
        return (some if len(reasons) < len(found.files) else "") + next(iter(reasons.values()))

    def why_not(self, dataset: str, protocol: str = "") -> str:
        """Why a dataset cannot be run here, or an empty string when it can; with a protocol, under that."""
        # Made-up data are written by the study itself, so they need not be there yet.
        reason = "" if self.budget.made_up else self.why_missing(dataset, protocol)
        if not reason and self.budget.datasets is not None and dataset not in self.budget.datasets:
            return self.outside_budget
        return reason

    def finetuning(self, model: str, dataset: str, protocol: str) -> "Finetuning":
        """The fine-tuning of a model on a dataset under a protocol, with its files below outputs/<scale>/."""
        from lib.finetuning.finetuning import Finetuning, First

        encoder, settings, first = self.encoder(model), self.protocol(protocol, dataset), None
        if settings.first_on:
            weights = paths.intermediate(self.scale, encoder.key, settings.first_on, protocol)
            other, how = self.dataset(settings.first_on), self.protocol(protocol, settings.first_on)
            first = First(other, how, weights, self.budget.seeds[0])
        keys = self.scale, encoder.key, dataset, protocol
        return Finetuning(
            encoder,
            self.dataset(dataset),
            settings,
            run_file=partial(paths.predictions, *keys),
            search_file=paths.tuning(*keys),
            machine=self.machine,
            first=first,
        )

    def finetune(self, model: str, dataset: str, protocol: str, save: Path | None = None) -> dict:
        """Choose settings, then train and test with every seed and fold; what is there already is not made again.

        `save`: a folder for the best run's model, as Finetuning.run has it; without it, the one that `evaluate --save`
        asked for. Returns the results record, also written to outputs/<scale>/results/.
        """
        work = self.finetuning(model, dataset, protocol)
        keys = {"model": work.encoder.key, "model title": work.encoder.title, "dataset": dataset, "protocol": protocol,
                "scale": self.scale}  # fmt: skip
        if params.is_released(model, self.scale):
            keys["weights"] = params.say_released(model)
        save = save or requests.name_save_folder(self.scale, work.encoder.key, dataset, protocol)
        told = {"protocol": protocol, "scale": self.scale}
        result = keys | work.run(params.list_seeds(work.encoder.key, self.scale), save, told)
        artefacts.write_json(paths.results(self.scale, work.encoder.key, dataset, protocol), result)
        return result

    def tune(self, model: str, dataset: str, protocol: str) -> dict:
        """Search the settings of a protocol that has `trials`; the record, also written to outputs/<scale>/tuning/.

        Several workers may call this at once for one model and dataset, and share the trials. StudyError for a protocol
        that searches nothing.
        """
        from lib.finetuning import tuning

        if not self.protocol(protocol, dataset).trials:
            raise StudyError(f"params/protocols.yaml, {protocol}, has no trials: it tries all of its candidates")
        work = self.finetuning(model, dataset, protocol)
        seed = params.list_seeds(work.encoder.key, self.scale)[0]  # whose search the fine-tuning takes
        chosen, trials = work.choose(seed)
        record = {
            "model": work.encoder.key, "dataset": dataset, "protocol": protocol, "scale": self.scale, "seed": seed,
            "score": f"dev {work.dataset.main_score}", "chosen on dev": chosen, "trials": trials,
            "shares of variance": tuning.weigh_settings(tuning.load_search(work.search_file, work.name_search(seed))),
            "commit": provenance.commit(),
        }  # fmt: skip
        artefacts.write_json(work.search_file.with_suffix(".json"), record)
        return record
