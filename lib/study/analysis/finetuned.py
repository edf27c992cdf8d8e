"""What fine-tuning left: tables and sentences of the pages of runs."""

import statistics

from lib.finetuning.finetuning import say_settings
from lib.study import params, results


def tabulate(result: dict) -> list[dict]:
    """The scores of every run, then mean and standard deviation over seeds, with and without collapsed runs."""
    rows = [
        {"seed": str(run["seed"])}
        | ({"fold": str(run["fold"])} if any(run["fold"] > 1 for run in result["runs"]) else {})
        | run["scores"]
        | {"instances": run["instances"]["test"], "rows": run["rows"]["test"], "cut": run["cut"]["test"]}
        | {"seconds": run["seconds"], "collapsed": run["collapsed"]}
        for run in result["runs"]
    ]
    sound = result | {"runs": [run for run in result["runs"] if not run["collapsed"]]}
    kinds = {"": result} | ({" of runs that did not collapse": sound} if len(sound["runs"]) < len(rows) else {})
    for kind, some in kinds.items():
        found = list(results.by_seed(some).values())
        if found:
            rows.append({"seed": f"mean{kind}"} | {n: statistics.mean(s[n] for s in found) for n in found[0]})
        if len(found) > 1:
            rows.append({"seed": f"sd{kind}"} | {n: statistics.stdev(s[n] for s in found) for n in found[0]})
    return rows


def describe(result: dict) -> str:
    """What the runs show, in sentences made from their numbers (Markdown)."""
    run, main = result["runs"][0], result["main score"]
    scores = [found[main] for found in results.by_seed(result).values()]
    base = next(name for name in run["instances"] if name != "test")
    collapsed = sum(bool(run["collapsed"]) for run in result["runs"])
    lines = [
        f"- {result['model title']} on {result['dataset']}: {main} {statistics.mean(scores):.2f} on the test set, "
        f"from {min(scores):.2f} to {max(scores):.2f} over {len(scores)} seeds.",
        f"- Trained on {run['instances'][base]} instances in {run['rows'][base]} sequences, {run['steps']} steps, with "
        + say_settings(result["chosen on dev"])
        + (f", chosen on the development set among {len(result['candidates'])}." if result["candidates"] else "."),
        f"- All {run['instances']['test']} test instances are scored, in {run['rows']['test']} sequences; "
        f"{run['cut']['test']} had to lose some of their text to the length limit.",
        f"- {collapsed} of {len(result['runs'])} runs collapsed.",
        f"- The splits were read in this order: {', '.join(run['reads'])}.",
    ]
    if any("trial" in one for one in result["candidates"]):
        lines.append("- The candidates were proposed by Optuna (notebook 32).")
    if run["first on"]:
        lines.append(f"- Trained first on {run['first on']}.")
    if params.load("scales", result["scale"]).made_up:
        lines.append("- The data are made up: these scores are not findings.")
    return "\n".join(lines)


def describe_search(record: dict) -> str:
    """What a search found, in sentences made from its numbers (Markdown)."""
    found = [trial[record["score"]] for trial in record["trials"]]
    shares = sorted(record["shares of variance"].items(), key=lambda item: -item[1])
    lines = [
        f"- The best of {len(found)} trials has {record['score']} {max(found):.2f}, the worst {min(found):.2f}, with "
        f"{say_settings(record['chosen on dev'])}."
    ]
    if shares:
        lines.append(f"- Most of the difference is due to the {shares[0][0].replace('_', ' ')} ({shares[0][1]:.0%}).")
    if params.load("scales", record["scale"]).made_up:
        lines.append("- The data are made up: these scores are not findings.")
    return "\n".join(lines)
