"""Preparation of `./run_all.sh evaluate`: check encoders and datasets, estimate the cost, keep the request."""

import argparse
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

from lib.benchmarks import own_data
from lib.benchmarks.own_data import OwnData
from lib.errors import StudyError
from lib.places import show_path
from lib.running import anew, workload
from lib.study import open_study, own_sets, params, paths, requests, scores

if TYPE_CHECKING:
    from lib.modeling.loading import Encoder
    from lib.modeling.models import Checkpoint
    from lib.study import Study


def ask(options: argparse.Namespace) -> str:
    """Report what the options of a command line amount to, keep the request, and return the target that runs it.

    Raises StudyError, before the request is written, if the model is not an encoder, if none of the datasets is at
    hand, or if the user's own data cannot be trained and tested on.
    """
    scale, protocol = options.scale, options.protocol
    study = open_study(scale)
    params.load("protocols", protocol)  # so that an unknown one is refused before anything is read
    user_data = own_data.read_own_folder(options.data) if options.data else None
    if user_data:
        print("\n".join(user_data.notes), flush=True)
    loaded = load_encoders(study, options.model, options.compare)
    encoder, *others = loaded
    requested = [keep_own(study, user_data)] if user_data else options.datasets
    chosen, at_hand = choose_datasets(study, requested, protocol)
    shares = {key: workload.share_cut(study, loaded[encoder], key, protocol) for key in at_hand}
    for key, (lacking, cut) in shares.items():
        print(f"{key}: {lacking:.1%} of its words hold an unknown token, {cut:.1%} are cut into three tokens or more")
    cut = {key: describe_cut(study, loaded[encoder], key, protocol) for key in at_hand} if user_data else {}
    unsaved = anew.list_unsaved(study, options.model, at_hand, protocol, options.save) if options.save else []
    if unsaved:
        print(f"not saved yet, so every seed is trained, also where its score is there: {', '.join(unsaved)}")
    trainings = sum(workload.count_trainings(study, key, protocol) for key in at_hand) * len(loaded)
    print(f"{protocol} at scale {scale}: {len(at_hand)} of {len(chosen)} sets at hand, {trainings} trainings")
    hours = workload.estimate_hours(study, product(loaded.values(), at_hand, [protocol]))
    print(f"about {hours:,.1f} hours of training, one job at a time on this machine, less what is done", flush=True)
    request = {"datasets": chosen, "compared": [other.key for other in others], "words": shares, "cut": cut}
    requests.write_request(scale, encoder, protocol, **request, save=str(options.save or ""))
    for other in others:
        add_datasets(study, other, protocol, chosen)
    if not options.dry_run:
        anew.forget_runs(scale, encoder.key, unsaved, protocol)
    return f"{encoder.key}--{protocol}"


def keep_own(study: "Study", data: OwnData) -> str:
    """Keep a record of the user's data, print where texts of it will be shown and any division, and return its key."""
    key = own_sets.keep_own_data(study.scale, data)
    print(f"{data.dataset.title} is called {key}; pages below outputs/{study.scale}/ will show texts of it")
    if data.division:
        print(f"which document is in which part: {show_path(paths.own_data(study.scale, key) / own_sets.DIVISION)}")
    return key


def describe_cut(study: "Study", encoder: "Encoder", key: str, protocol: str) -> dict[str, tuple[int, int]]:
    """Print and return the counts of workload.count_cut."""
    counts = workload.count_cut(study, encoder, key, protocol)
    length = encoder.length(study.protocol(protocol, key).max_length)
    is_tagged = study.dataset(key).family == "tagging"
    effect = "are read in several sequences" if is_tagged else "lose their end"
    by_split = [f"{longer:,} of {number:,} in {split}" for split, (longer, number) in counts.items()]
    print(f"longer than {length} tokens, so that they {effect}: {', '.join(by_split)}")
    return counts


def load_encoders(study: "Study", model: str, compare: list[str] | None) -> dict["Checkpoint", "Encoder"]:
    """Load the encoder, and those to compare it with that can be opened; `compare: []` takes the published ones."""
    encoder = study.encoder(model)
    loaded = {encoder: encoder.load()}
    print(loaded[encoder].describe())
    for name in params.keys("encoders") if compare == [] else compare or []:
        try:
            other = study.encoder(name)
            if other in loaded:
                continue
            loaded[other] = other.load()
            print(f"beside it: {loaded[other].describe()}")
        except StudyError as error:
            print(f"left out: {name}: {error}")
    return loaded


def choose_datasets(study: "Study", names: list[str] | None, protocol: str) -> tuple[list[str], list[str]]:
    """Return the requested datasets, and those of them that are at hand. Raises StudyError if none is."""
    chosen = list(dict.fromkeys(names or scores.choose_printed_datasets(protocol)))
    at_hand = []
    for key in chosen:
        if why_missing := study.why_missing(key, protocol):
            print(f"left out: {key}: {why_missing}")
        else:
            at_hand.append(key)
    if not at_hand:
        raise StudyError(f"none of {', '.join(chosen)} is at hand at scale '{study.scale}': see ./run_all.sh data")
    return chosen, at_hand


def add_datasets(study: "Study", encoder: "Checkpoint", protocol: str, keys: Iterable[str]) -> None:
    """Add datasets to the request of an encoder that another is compared with; its earlier request is kept.

    A user's folder that is gone or has changed since the earlier request is dropped from it, and said.
    """
    request = requests.find_request(study.scale, encoder.key, protocol)
    datasets = []
    for key in dict.fromkeys([*request["datasets"], *keys]):
        if own_sets.has_changed(study.scale, key):
            print(f"left out: {encoder.key} on {key}: its folder is gone or has changed since")
        else:
            datasets.append(key)
    request["datasets"] = datasets
    requests.write_request(study.scale, encoder, protocol, **request)
