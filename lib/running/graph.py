"""Snakemake run on the study's Snakefile: its news of jobs, progress and time left, and the plan of a dry run."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from math import nan
from pathlib import Path

import pandas as pd

from lib import artefacts
from lib.errors import StudyError
from lib.running import plan, warm
from lib.study import params, paths

SILENCE = 60.0  # seconds without news before the progress of running jobs is printed
REASONS = {  # how Snakemake's reasons begin -> the study's words
    "Forced": "forced by --again",
    "Missing": "not made yet",
    "Params": "settings, data, cells or versions changed",
    "Input files updated by": "what it reads is made again",
    "Set of input files": "it reads other jobs",
    "Incomplete output files": "it was stopped",
    "Updated": "what it reads is newer",
}
CHANGED = {  # settings whose values are fingerprints, sizes or times -> what is said instead
    "cells": "its cells changed",
    "files": "its files changed",
    "settings": REASONS["Params"],
}


def snakemake(scale: str, words: list[str], options: list[str], stream: bool = False) -> tuple[int, str]:
    """Run Snakemake on the Snakefile, printing the runner's lines; return its exit status and log.

    The study locks the folder itself, so Snakemake's own lock, which outlives a kill, is not needed.
    """
    code = "from lib import parent; parent.watch(); from snakemake.cli import main; main()"
    command = [sys.executable, "-c", code, "--nolock", "--rerun-incomplete", "--rerun-triggers", "params",
               "input", "mtime", "--config", f"scale={scale}", f"targets={json.dumps(words)}"]  # fmt: skip
    environment = os.environ | {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', '')}"}
    if params.load("scales", scale).made_up:  # set here because it is read when a package is imported
        environment["HF_HUB_OFFLINE"] = "1"
    lines, failed, counter = [], False, Counter(scale)
    with fork_jobs(scale, options, environment) as environment:
        process = subprocess.Popen(
            command + options,
            cwd=paths.ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if not stream and not {"--summary", "--dry-run"} & {*options}:
            threading.Thread(target=counter.report, args=[process], daemon=True).start()
        for line in process.stdout:
            lines.append(line)
            news = find_news(line)
            progress = counter.count(line, news)
            failed = failed or news.startswith("FAILED")
            if stream:
                print(line, end="", flush=True)
            elif news:
                print(f"{datetime.now():%H:%M:%S} {news}{progress}", flush=True)
        status = process.wait()
    if status and not failed and not stream:
        print("".join(lines[-30:]), file=sys.stderr)  # the graph itself failed, not a notebook
    return status, "".join(lines)


def fork_jobs(scale: str, options: list[str], environment: dict[str, str]) -> AbstractContextManager[dict[str, str]]:
    """Return the environment in which jobs find a warm parent (lib/running/warm.py), if one can be used.

    It can on this machine, and at scales that request no GPU, because a GPU's state does not survive a fork.
    """
    if {"--profile", "--dry-run", "--summary"} & {*options} or scale in plan.ON_GPUS:
        return nullcontext(environment)
    return warm.start_parent(paths.ROOT / "outputs" / ".warm", environment)


def find_news(line: str) -> str:
    """Return what a line of Snakemake's log says about a job that starts or ends; empty for other lines.

    Snakemake writes a message and its line end separately, so a job's line may follow a message.
    """
    news = re.search(r"(start|done|FAILED) +(\d\d_|documents |texts|dataset_texts ).*", line)
    return news[0] if news else ""


class Counter:
    """The number of jobs done in a run, their total, and the time left at the current pace."""

    def __init__(self, scale: str):
        self.scale, self.begun, self.spoken = scale, time.monotonic(), time.monotonic()
        self.done, self.total = 0, 0

    def count(self, line: str, news: str = "") -> str:
        """Take in a line of the log; return what to append to its news if a job has ended."""
        if match := re.match(r"total +(\d+)$", line):
            self.total = int(match[1]) - 1  # without rule `all`
        if match := re.search(r"(\d+) of \d+ steps", line):  # two jobs' lines may arrive as one and count once
            self.done = max(self.done, int(match[1]))
        if not news:
            return ""
        self.spoken = time.monotonic()
        if news.startswith("start"):
            return ""
        self.done += 1
        seconds_left = (self.spoken - self.begun) / self.done * (self.total - self.done)
        return f"; {self.done} of {self.total}" + (
            f", about {format_time(seconds_left)} left" if self.done < self.total else ""
        )

    def report(self, process: subprocess.Popen) -> None:
        """While a process runs, print the progress of running jobs after each minute without news."""
        while process.poll() is None:
            time.sleep(1)
            if time.monotonic() - self.spoken > SILENCE:
                self.spoken = time.monotonic()
                for lock in sorted(paths.output(self.scale, "running").glob("*.lock")):
                    if artefacts.is_locked(lock):
                        progress = describe_progress(lock)
                        print(f"{datetime.now():%H:%M:%S} runs    {lock.stem}{progress and ': '}{progress}", flush=True)


def format_time(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def describe_plan(targets: plan.Plan, output: str) -> str:
    """Summarise a dry run of Snakemake: for each stage and reason, the number of jobs and about how long they take."""
    rows = list_planned_jobs(targets, output)
    if not rows:
        return f"Nothing to do: everything asked for at scale '{targets.scale}' is up to date."
    times = pd.DataFrame(rows).groupby(["stage", "why"], sort=False)["seconds"]
    counts = times.agg(jobs="size", known="count", seconds="sum").reset_index()
    counts = counts.sort_values("stage", key=lambda stages: stages.map([*plan.STAGES].index), kind="stable")
    counts["about"] = [format_time(row.seconds) if row.known == row.jobs else "" for row in counts.itertuples()]
    table = counts[["stage", "jobs", "why", "about"]].to_markdown(index=False)
    summary = f"{table}\n{len(rows)} jobs"
    n_known = counts["known"].sum()
    if not n_known:
        return summary
    duration = format_time(counts["seconds"].sum())
    return f"{summary}; {n_known} of them about {duration} one after the other, by earlier runs of the same notebooks"


def list_planned_jobs(targets: plan.Plan, output: str) -> list[dict]:
    """Return a row for each job of a dry run: stage, reason, and seconds of earlier runs (nan if unknown)."""
    rows, seconds = [], measure_pages(targets.scale)
    for block in re.split(r"^(?=(?:local)?rule \w+:)", output, flags=re.M)[1:]:
        receipt = re.search(r"output: \S+/done/(\w+)/(\S+)", block)
        if receipt:
            stage, keys = receipt[1], receipt[2].split("--")
            reason = re.search(r"reason: (.*)", block)[1]
            changes = targets.changes(stage, keys) if "Params have changed" in reason else []
            why = "; ".join(dict.fromkeys(describe_change(*change) for change in changes)) or describe_reason(reason)
            rows.append({"stage": stage, "why": why, "seconds": seconds.get(targets.notebook(stage, *keys), nan)})
    return rows


def describe_reason(reason: str) -> str:
    """Return the study's words for one of Snakemake's reasons, or the reason itself if there are none."""
    for prefix, phrase in REASONS.items():
        if reason.startswith(prefix):
            return phrase
    return reason


def describe_change(name: str, before: str, now: str) -> str:
    """Describe a changed setting: its old and new value, unless these mean nothing to a reader."""
    if phrase := CHANGED.get(name.rpartition(", ")[2]):
        return phrase
    return f"{name}: {shorten_value(before)} -> {shorten_value(now)}"


def shorten_value(value: str) -> str:
    """Cut a value to 40 characters."""
    return value if len(value) <= 40 else f"{value[:37]}..."


def measure_pages(scale: str) -> dict[str, float]:
    """Return the seconds that each notebook took at a scale: the mean over complete copies, here or in the record."""
    durations = defaultdict(list)
    for page in paths.find_all(scale, "notebooks", "*.ipynb"):
        try:
            seconds = artefacts.read_json(page)["metadata"].get("papermill", {}).get("duration")
        except StudyError:
            continue
        durations[page.stem.split("--")[0]] += [seconds] if seconds else []
    return {name: sum(times) / len(times) for name, times in durations.items() if times}


def describe_progress(lock: Path) -> str:
    """Describe the progress of a running notebook, or return an empty string if it reports none."""
    try:
        progress = json.loads(lock.with_suffix(".progress").read_text())
    except (OSError, ValueError):
        return ""
    return f"{progress['what']}: {progress['done']} of {progress['total']}, {progress['seconds_left']} s left"
