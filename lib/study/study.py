"""The study at one scale: the objects behind its keys."""

from collections.abc import Callable
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

if TYPE_CHECKING:  # these import pandas, tokenizers and torch, which is slow
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
    """The study at one scale. Opening it reads only the scale's budget; everything else is read on demand."""

    scale: str

    def __post_init__(self):
        params.load("scales", self.scale)

    @property
    def budget(self) -> params.Scale:
        return params.load("scales", self.scale)

    @property
    def outside_budget(self) -> str:
        """The reason given for a run or dataset that the budget leaves out."""
        return f"outside the budget of scale '{self.scale}'"

    @cached_property
    def cells(self) -> dict[str, list[dict]]:
        """The cells of the tables used so far, by key; published.list_lines adds those of each table once."""
        return {}

    @property
    def data(self) -> Path:
        """The folder of raw data, which may be missing."""
        return paths.data(self.scale)

    @property
    def mesh_tables(self) -> tuple[Path, ...]:
        """The tables of MeSH's descriptors that are in the data folder."""
        return tuple(path for name in MESH if (path := self.data / name).is_file())

    @property
    def mesh(self) -> Mesh:
        """MeSH's descriptors, from the releases in the data folder. Raises StudyError for a malformed table."""
        return read_mesh(self.mesh_tables)

    def corpus(self, key: str) -> "Corpus":
        """Return a registered corpus. Raises StudyError, with the nearest names, for an unknown key."""
        from lib.study.corpora import Corpus

        return Corpus(key, self)

    def vocabulary(self, key: str) -> "Vocabulary":
        """Return a registered vocabulary. Raises StudyError, with the nearest names, for an unknown key."""
        from lib.study.vocabularies import Vocabulary

        return Vocabulary(key, self)

    def dataset(self, key: str) -> Dataset:
        """Return a registered dataset with its files at this scale, or one from a folder given to `evaluate --data`.

        Raises StudyError, with the nearest names, for an unknown key, and for a user's folder that is gone or changed.
        """
        if key not in registry.DATASETS and own_sets.is_own(self.scale, key):
            return own_sets.find_own(self.scale, key)
        dataset = registry.lookup(key)
        how = f"./run_all.sh data {dataset.group} fetches it or says how to get it" if dataset.group else ""
        return dataset.at(self.data, how)

    @property
    def machine(self) -> Machine:
        return Machine(precision=self.budget.precision, threads=self.budget.threads)

    def model(self, key: str) -> "Model":
        """Return a registered model, to pretrain. Raises StudyError, with the nearest names, for an unknown key.

        A repeated pretraining, `pubmedbert.2`, continues models of its own seed. Word vectors that a model starts from
        are those of its text, the same for all seeds.
        """
        from lib.study.pretrained import Model

        return Model(key, self)

    def encoder(self, name: str) -> "Checkpoint":
        """Return a pretrained model by registered key, folder or name on the hub.

        Raises StudyError as in encoders.find_model.
        """
        from lib.study import encoders

        return encoders.find_model(self, name)

    def protocol(self, key: str, dataset: str) -> FinetuningSettings:
        """Return the settings of fine-tuning on a dataset under a protocol, with the budget's changes.

        Raises StudyError for an unknown protocol or dataset.
        """
        return params.load_finetuning(key, dataset, self.dataset(dataset).family, self.scale)

    def published(self, table: str) -> "pd.DataFrame":
        """Return a published table or figure of scores, a line for each printed cell and dataset with its run.

        Columns: row, column, metric, published, published_std; model, dataset, protocol, score; group (of datasets
        within a mean), is_mean; why_not (why there is no run here), substituted (what the run has in place of the model
        or protocol that the paper names), differs (how the dataset differs from the paper's). Columns that only we have
        carry no printed number. A figure also has `side` (`than` for lines whose score is subtracted), and `x` and
        `published_x`, the positions of our run and the paper's on its axis.

        Which runs are possible is determined once, when a table is first used. Raises StudyError for a table of another
        kind, and with the nearest names for an unknown key.
        """
        import pandas as pd

        from lib.study import published

        return pd.DataFrame(published.list_lines(self, table))

    def results(self, own: bool = False) -> "pd.DataFrame":
        """Return every score of every run at this scale, made here or in the record, without needing data or weights.

        `own`: include the user's own data. Columns: model, pretraining (its seed), dataset, protocol, seed, fold, train
        (number of training instances), device (hardware and precision of the encoder), score, value, jackknife.
        """
        from lib.study import results

        return results.list_scores(self.scale, own)

    def baselines(self) -> "pd.DataFrame":
        """Return the datasets' baselines from page 15, here or in the record; empty if neither is there.

        Columns: dataset, score; chance, without_pretraining, unlabelled_text (a CRF with word classes from it). Each is
        the best method of its kind, and no worse than chance, scored on the test set.
        """
        from lib.study import results

        return results.read_baselines(self.scale)

    def find_table(self, name: str) -> "pd.DataFrame | None":
        """Read one of our tables, from a run here or the record; None if there is neither."""
        from lib.study import results

        return results.find_table(paths.table(self.scale, name))

    def save(self, name: str, content: "pd.DataFrame | Figure") -> None:
        """Write a page's table or figure below outputs/<scale>/; a published table gets the columns of the record.

        Without data nothing is written, because the page then shows what the record holds.
        """
        from lib.study import figures, results

        if not self.data.is_dir():
            return
        if isinstance(content, figures.Figure):
            figures.save(content, paths.figure(self.scale, name))
        else:
            results.write_table(self.scale, name, content)

    def compute(self, name: str, make: Callable[..., object], *arguments) -> "pd.DataFrame":
        """Make a page's table and save it; without the scale's data, return the one at hand, of a run or the record.

        Raises StudyError as results.computed does.
        """
        from lib.study import results

        return results.computed(paths.table(self.scale, name), self.scale, make, *arguments)

    def keep(self, name: str, table: "pd.DataFrame") -> "pd.DataFrame":
        """Save a table and return the one to show: the same or, without the scale's data, the record's."""
        return self.compute(name, lambda: table)

    def why_missing(self, dataset: str, protocol: str = "") -> str:
        """Return why a split of a dataset cannot be read, or an empty string.

        With a protocol, this includes the dataset on which the protocol fine-tunes first.
        """
        data = self.dataset(dataset)
        if reasons := data.missing:
            prefix = f"the {' and '.join(reasons)} split{'s are' if len(reasons) > 1 else ' is'} not at hand: "
            return (prefix if len(reasons) < len(data.files) else "") + next(iter(reasons.values()))
        first_dataset = self.protocol(protocol, dataset).first_on if protocol else None
        reason = self.why_missing(first_dataset) if first_dataset else ""
        return reason and f"{protocol} fine-tunes on {first_dataset} first: {reason}"

    def why_not(self, dataset: str, protocol: str = "") -> str:
        """Return why a dataset cannot be run here (under a protocol, if one is given), or an empty string."""
        # The study writes made-up data itself, so they need not be there yet.
        reason = "" if self.budget.made_up else self.why_missing(dataset, protocol)
        if not reason and self.budget.datasets is not None and dataset not in self.budget.datasets:
            return self.outside_budget
        return reason

    def finetuning(self, model: str, dataset: str, protocol: str) -> "Finetuning":
        """Return the fine-tuning of a model on a dataset under a protocol, with its files below outputs/<scale>/."""
        from lib.finetuning.finetuning import Finetuning, First

        encoder, settings, first = self.encoder(model), self.protocol(protocol, dataset), None
        if settings.first_on:
            weights = paths.intermediate(self.scale, encoder.key, settings.first_on, protocol)
            first_dataset, first_settings = self.dataset(settings.first_on), self.protocol(protocol, settings.first_on)
            first = First(first_dataset, first_settings, weights, self.budget.seeds[0])
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
        """Choose settings, then train and test with every seed and fold, without repeating finished runs.

        Returns the results record, which is also written to outputs/<scale>/results/. `save`: a folder for the best
        run's model, as in Finetuning.run; by default the one requested with `evaluate --save`.
        """
        work = self.finetuning(model, dataset, protocol)
        facts = {"protocol": protocol, "scale": self.scale}
        keys = {"model": work.encoder.key, "model title": work.encoder.title, "dataset": dataset} | facts
        if params.is_released(model, self.scale):
            keys["weights"] = params.describe_weights(model)
        save = save or requests.name_save_folder(self.scale, work.encoder.key, dataset, protocol)
        result = keys | work.run(params.list_seeds(work.encoder.key, self.scale), save, facts)
        artefacts.write_json(paths.results(self.scale, work.encoder.key, dataset, protocol), result)
        return result

    def tune(self, model: str, dataset: str, protocol: str) -> dict:
        """Search the settings of a protocol that has `trials`.

        Returns the record, which is also written to outputs/<scale>/tuning/. Several workers may call this at once for
        one model and dataset, and share the trials. Raises StudyError for a protocol without trials.
        """
        from lib.finetuning import tuning

        if not self.protocol(protocol, dataset).trials:
            raise StudyError(f"params/protocols.yaml, {protocol}, has no trials: it tries all of its candidates")
        work = self.finetuning(model, dataset, protocol)
        seed = params.list_seeds(work.encoder.key, self.scale)[0]  # fine-tuning uses this seed's search
        chosen, trials = work.choose(seed)
        record = {
            "model": work.encoder.key, "dataset": dataset, "protocol": protocol, "scale": self.scale, "seed": seed,
            "score": f"dev {work.dataset.main_score}", "chosen on dev": chosen, "trials": trials,
            "shares of variance": tuning.weigh_settings(tuning.load_search(work.search_file, work.name_search(seed))),
            "commit": provenance.commit(),
        }  # fmt: skip
        artefacts.write_json(work.search_file.with_suffix(".json"), record)
        return record
