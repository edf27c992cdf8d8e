"""What a scale can run with the data and weights at hand: runs by job, pretrainings, vocabularies."""

from collections.abc import Iterable
from functools import cached_property
from itertools import chain

from lib.running.page_jobs import Keys, each
from lib.study import claims, contrasts, open_study, own_sets, params, published, requests


class Runnable:
    """The runs that can be made at a scale, and the jobs that make them."""

    def __init__(self, scale: str):
        self.scale, self.study = scale, open_study(scale)

    @cached_property
    def runs_of_tables(self) -> dict[str, list[params.RunKey]]:
        return {key: published.list_table_runs(self.study, key) for key in params.load_tables("scores", "curves")}

    @cached_property
    def planned(self) -> dict[tuple[str, ...], list[params.RunKey]]:
        """Every run of the study that can be made here, by its job: model, protocol and task family.

        A job makes all of its runs, whatever the command line asks for, so that its page stays the same.
        """
        runs = [*chain(*self.runs_of_tables.values()), *self.study.budget.panel_runs()]
        runs += [*claims.list_claim_runs(self.study), *contrasts.list_contrast_runs(self.study)]
        by_job = {}
        for run in dict.fromkeys(runs):
            if not self.study.why_not(run[1], run[2]) and not params.why_no_weights(run[0], self.scale):
                by_job.setdefault(self.name_job(run), []).append(run)
        return by_job

    def name_job(self, run: params.RunKey) -> tuple[str, str, str]:
        """Return the job that makes a run: model, protocol and task family."""
        model, dataset, protocol = run
        return model, protocol, self.study.dataset(dataset).family

    def runs_in(self, model: str, protocol: str, family: str) -> list[params.RunKey]:
        """List the runs of a job: the planned ones, and those requested for an encoder under evaluation."""
        job = model, protocol, family
        requested = [run for run in self.requested_runs(model, protocol) if self.name_job(run) == job]
        return list(dict.fromkeys(self.planned.get(job, []) + requested))

    def requested_runs(self, model: str, protocol: str) -> list[params.RunKey]:
        """List the runs requested for an encoder under evaluation that can be made.

        An earlier request may name a user's folder that has changed since; what else is asked for still runs.
        """
        datasets = requests.find_request(self.scale, model, protocol)["datasets"]
        datasets = [dataset for dataset in datasets if not own_sets.has_changed(self.scale, dataset)]
        return [(model, dataset, protocol) for dataset in datasets if not self.study.why_missing(dataset, protocol)]

    def finetune_jobs(self, runs: Iterable[params.RunKey]) -> Keys:
        """List the jobs of the given runs, leaving out those that cannot be made here."""
        return [job for job in dict.fromkeys(map(self.name_job, runs)) if job in self.planned]

    def evaluation_jobs(self, model: str, protocol: str) -> Keys:
        """List the jobs of the runs requested for an encoder and for those that it is compared with."""
        runs = self.requested_runs(model, protocol)
        for other_model in requests.read_request(self.scale, model, protocol)["compared"]:
            runs += self.requested_runs(other_model, protocol)
        return list(dict.fromkeys(map(self.name_job, runs)))

    def vocabulary_jobs(self, names: Iterable[str]) -> Keys:
        """Return those of the named vocabularies that are, and can be, trained here."""
        candidates = map(self.study.vocabulary, names)
        return each(
            vocabulary.key
            for vocabulary in candidates
            if vocabulary.corpora and not vocabulary.why_not_trained and not vocabulary.released
        )

    def pretrain_jobs(self, model: str) -> Keys:
        """Return a model's pretraining job; empty for external encoders, baselines and public weights."""
        return [(model,)] if params.is_model(model) and not params.is_released(model, self.scale) else []
