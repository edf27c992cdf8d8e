"""The audit of the papers' printed numbers: what follows from printed cells, recomputed, and what rounding excuses.

What follows from what stands in params/audit.yaml.
"""

import itertools
from collections.abc import Iterator

import pandas as pd

from lib.errors import StudyError
from lib.study import results
from lib.study.analysis import facts, printed
from lib.study.analysis.printed import EPSILON, Number, Table, find_table, names_in, paper_of, require

COLUMNS = ["paper", "where", "kind", "what", "printed", "recomputed", "difference", "rounding", "excused_by_rounding",
           "verdict", "note"]  # fmt: skip
VERDICTS = {
    "differs": "not excused",
    "averaging": "excused by averaging over runs",
    "rounding": "excused by rounding",
    "agrees": "agree",
}
AGAIN = ("two tables", "two papers")  # kinds of lines that are printed twice, and not recomputed
DIFFERENCES = ("difference", "smallest difference", "largest difference", "ratio", "gain")
FILE = "params/audit.yaml"


def judge(stated: Number, found: Number, exact: bool = False, averaging: float = 0.0) -> dict:
    """What a line of the audit says of a printed number and the recomputed one.

    `agrees`: the recomputed number, rounded, is the printed one. `rounding`: another one is that the recomputation can
    come to within the rounding of its cells. `averaging`: one that lies lower by up to `averaging` is.
    `exact`: a count of comparisons, which is not itself rounded. The column `rounding` is half the width of what
    rounding allows.
    """
    half = 0.0 if exact else stated.half
    # Where cells are rounded, the ends take all of them at their ends at once: left out.
    edge = EPSILON if exact else -EPSILON
    low, high = found.low - half - edge, found.high + half + edge
    if abs(stated.value - found.value) <= half + EPSILON:
        verdict = "agrees"
    elif low < stated.value < high:
        verdict = "rounding"
    else:
        verdict = "averaging" if low - averaging < stated.value < high else "differs"
    return {
        "printed": str(stated),
        "recomputed": round(found.value, 4),
        "difference": round(stated.value - found.value, 4),
        "rounding": round(found.half + half, 4),
        "excused_by_rounding": "yes" if verdict in ("agrees", "rounding") else "no",
        "verdict": verdict,
    }


def line(paper: str, where: str, kind: str, what: str, judged: dict, note: str = "") -> dict:
    """A row of the audit."""
    return {"paper": paper, "where": where, "kind": kind, "what": what, "note": note} | judged


def check_f1(tables: dict[str, Table], checks: list[facts.F1Check]) -> Iterator[dict]:
    """Every printed F1 that stands beside precision and recall."""
    for check in checks:
        entry = f"{FILE}, f1 of {check.table}"
        table = find_table(tables, check.table, entry)
        rows, columns, metrics = names_in(table)
        require(f"metric of {check.table}", [check.precision, check.recall, check.f1], metrics, entry)
        require(f"row of {check.table}", check.but, rows, entry)
        require(f"column of {check.table}", check.notes, columns, entry)
        for row, column in itertools.product([row for row in rows if row not in check.but], columns):
            precision, recall, f1 = (table[row, column, name] for name in (check.precision, check.recall, check.f1))
            below = average_below(precision, recall)
            judged = judge(f1, printed.f1(precision, recall), averaging=below)
            note = f"means over runs: F1 may lie up to {below:.3f} lower" if below else check.notes.get(column, "")
            what = f"{check.f1} from precision and recall"
            yield line(paper_of(check.table), f"{check.table}, {row}, {column}", "F1", what, judged, note)


def average_below(precision: Number, recall: Number) -> float:
    """How far a mean over runs of F1 may lie below the F1 of mean precision P and recall R, which is never below it.

    To second order by 2 Var(R p - P r) / (P + R)^3, at most when p and r vary against each other. 0 where no standard
    deviation over runs is printed.
    """
    if precision.spread is None or recall.spread is None:
        return 0.0
    deviation = recall.value * precision.spread + precision.value * recall.spread
    return 2 * deviation**2 / (precision.value + recall.value) ** 3


def check_averages(tables: dict[str, Table], checks: list[facts.AverageCheck]) -> Iterator[dict]:
    """Every printed average, total and overall score, for each column (or row) and metric that has one."""
    for check in checks:
        for key in check.tables:
            entry = f"{FILE}, averages of {key}, {check.name}"
            yield from check_average(key, find_table(tables, key, entry), check, entry)


def check_average(key: str, table: Table, check: facts.AverageCheck, entry: str) -> Iterator[dict]:
    """Every cell of one row or column of averages."""
    rows, columns, _ = names_in(table)
    require(f"row or column of {key}", [check.name, *check.but], rows + columns, entry)
    names = rows if check.name in rows else columns
    repeated = [name for name, times in check.weights.items() for _ in range(times)]
    groups = check.groups or [repeated or [name for name in names if name != check.name]]
    members = list(dict.fromkeys(itertools.chain(*groups)))
    require(f"row or column of {key}", members, names, entry)
    for (row, column, metric), stated in table.items():
        if check.name not in (row, column) or {row, column} & {*check.but}:
            continue
        places = {name: (name, column) if check.name == row else (row, name) for name in members}
        cells = {name: printed.find_cell(table, *place, metric, entry) for name, place in places.items()}
        found = printed.mean([printed.mean([cells[name] for name in group]) for group in groups])
        where = f"{key}, {row}, {column}, {metric}"
        yield line(paper_of(key), where, "average", describe_groups(check, groups), judge(stated, found))


def describe_groups(check: facts.AverageCheck, groups: list[list[str]]) -> str:
    """What is averaged."""
    if check.weights:
        return "mean of " + " and ".join(f"{name} ({times} sets)" for name, times in check.weights.items())
    cells = sum(map(len, groups))
    return f"mean of {len(groups)} means over {cells} cells" if len(groups) > 1 else f"mean of {cells} cells"


def check_differences(tables: dict[str, Table], checks: list[facts.DifferenceCheck]) -> Iterator[dict]:
    """Every cell of a printed column of differences."""
    for check in checks:
        entry = f"{FILE}, differences of {check.table}"
        table = find_table(tables, check.table, entry)
        columns = names_in(table)[1]
        require(f"column of {check.table}", [check.column, check.than], columns, entry)
        others = [column for column in columns if column not in (check.column, check.than)]
        for (row, column, metric), stated in table.items():
            if column == check.column:
                best = printed.combine([table[row, other, metric] for other in others], max)
                judged = judge(stated, best - table[row, check.than, metric])
                what = f"the highest of {len(others)} above {check.than}"
                yield line(paper_of(check.table), f"{check.table}, {row}", "difference", what, judged)


def check_statements(tables: dict[str, Table], checks: list[facts.StatementCheck]) -> Iterator[dict]:
    """Every number of abstracts and running text that follows from printed cells."""
    for check in checks:
        require("paper", [check.paper], results.PAPERS, FILE)
        if check.printed:
            yield check_statement(tables, check)
        for row, stated in check.rows.items():
            of, than = ([cells.model_copy(update={"rows": [row]}) for cells in side] for side in (check.of, check.than))
            changes = {"printed": stated, "of": of, "than": than, "what": f"{row}: {check.what}"}
            yield check_statement(tables, check.model_copy(update=changes))


def check_statement(tables: dict[str, Table], check: facts.StatementCheck) -> dict:
    """One such number."""
    entry = f"{FILE}, {check.paper}, {check.where}: {check.what}"
    of, than = printed.select(tables, check.of, entry), printed.select(tables, check.than, entry)
    try:
        found = printed.OPERATIONS[check.operation](of, than)
    except ValueError:
        raise StudyError(f"{entry}: {len(of)} numbers on one side, {len(than)} on the other") from None
    stated, note = printed.read_number(check.printed), check.note
    judged = judge(stated, found, exact=check.operation == "wins")
    if check.at_least:
        note = f"at least; {note}" if note else "at least"
        if stated.value <= found.high:
            verdict = "agrees" if stated.value <= found.value else "rounding"
            judged |= {"verdict": verdict, "excused_by_rounding": "yes"}
    sources = {c.paper if isinstance(c, facts.Given) else paper_of(c.table) for c in (*check.of, *check.than)}
    kind = "difference" if check.operation in DIFFERENCES else "text"
    return line(check.paper, check.where, kind if sources == {check.paper} else "two papers", check.what, judged, note)


def check_repeated(tables: dict[str, Table], known: facts.Repeated) -> Iterator[dict]:
    """The same model, dataset and metric in two tables of a paper, and in two papers.

    Each later printing is held against the first one of its own paper, the first one of each paper against that of each
    paper before.
    """
    for (model, dataset, metric), printings in find_printings(tables, known).items():
        firsts: dict[str, tuple[str, Number]] = {}
        pairs = []
        for place in printings:
            paper = paper_of(place[0])
            pairs += [(first, place) for first in ([firsts[paper]] if paper in firsts else firsts.values())]
            firsts.setdefault(paper, place)
        for (before, earlier), (after, later) in pairs:
            kind = "two tables" if paper_of(before) == paper_of(after) else "two papers"
            note = "; ".join(n.note for n in known.notes if speaks_of(n, before, after, model, dataset))
            what = f"{model} on {dataset}, {metric}"
            yield line(paper_of(after), f"{after}, beside {before}", kind, what, judge(later, earlier), note)


def find_printings(tables: dict[str, Table], known: facts.Repeated) -> dict[tuple, list[tuple[str, Number]]]:
    """Of each model, dataset and metric the tables that print it, in the order in which the model names them."""
    check_names(tables, known)
    metrics = {name: metric for metric, names in known.metrics.items() for name in names}
    found: dict[tuple, list[tuple[str, Number]]] = {}
    for model, places in known.models.items():
        for key, place in places.items():
            datasets = name_datasets(key, known)
            for (row, column, metric), number in tables[key].items():
                dataset = datasets.get(column if row == place.name else row)
                asked = place.datasets or datasets.values()
                if place.name in (row, column) and metric in metrics and dataset in asked:
                    found.setdefault((model, dataset, metrics[metric]), []).append((key, number))
    return found


def name_datasets(key: str, known: facts.Repeated) -> dict[str, str]:
    """The datasets of a table, by the names that it gives them."""
    return {
        name: dataset for dataset, names in known.datasets.items() for where, name in names.items() if is_in(key, where)
    }


def check_names(tables: dict[str, Table], known: facts.Repeated) -> None:
    """StudyError for a name that no table has, or that the mapping itself lacks."""
    every = {key: {name for names in names_in(table)[:2] for name in names} for key, table in tables.items()}
    wheres = {*tables, *printed.PAPERS}
    for model, places in known.models.items():
        entry = f"{FILE}, repeated, {model}"
        require("table", places, tables, entry)
        for key, place in places.items():
            require(f"row or column of {key}", [place.name], every[key], entry)
            require("dataset", place.datasets, known.datasets, entry)
    for dataset, names in known.datasets.items():
        entry = f"{FILE}, repeated, {dataset}"
        require("table or paper", names, wheres, entry)
        for where, name in names.items():
            there = set().union(*(every[key] for key in tables if is_in(key, where)))
            require(f"row or column of {where}", [name], there, entry)
    for metric, names in known.metrics.items():
        there = {name for table in tables.values() for name in names_in(table)[2]}
        require("metric", names, there, f"{FILE}, repeated, {metric}")
    for note in known.notes:
        entry = f"{FILE}, repeated, the note '{note.note}'"
        require("table or paper", note.between, wheres, entry)
        require("model", note.models, known.models, entry)
        require("dataset", note.datasets, known.datasets, entry)


def is_in(key: str, where: str) -> bool:
    """Whether a table is the one meant, or one of the paper meant."""
    return where in (key, key.split("-")[0])


def speaks_of(note: facts.PairNote, before: str, after: str, model: str, dataset: str) -> bool:
    """Whether a note is about these two tables, this model and this dataset."""
    one, other = note.between
    there = is_in(before, one) and is_in(after, other) or is_in(before, other) and is_in(after, one)
    return there and model in (note.models or [model]) and dataset in (note.datasets or [dataset])


def build(known: facts.Audit) -> pd.DataFrame:
    """Every line of the audit, those that agree as well."""
    tables = printed.read_tables(known.counted)
    require("table", known.counted, tables, f"{FILE}, counted")
    lines = [
        *check_f1(tables, known.f1),
        *check_averages(tables, known.averages),
        *check_differences(tables, known.differences),
        *check_statements(tables, known.statements),
        *check_repeated(tables, known.repeated),
    ]
    return pd.DataFrame(lines, columns=COLUMNS)


def tally(lines: pd.DataFrame) -> pd.DataFrame:
    """How many lines were checked, and how they came out, by paper and kind."""
    paper = pd.Categorical(lines["paper"].map(results.PAPERS), results.PAPERS.values())
    counts = lines.assign(paper=paper).groupby(["paper", "kind"], observed=True)["verdict"].value_counts()
    counts = counts.unstack(fill_value=0).reindex(columns=[*reversed(VERDICTS)], fill_value=0).rename(columns=VERDICTS)
    counts.insert(0, "checked", counts.sum(axis=1))
    return counts.rename_axis(columns=None).reset_index()


def list_exceptions(lines: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    """The lines of some kinds whose recomputed number is another than the printed one, the unexcused first."""
    found = lines[lines["kind"].isin(kinds) & (lines["verdict"] != "agrees")].drop(columns="excused_by_rounding")
    return found.sort_values("verdict", key=lambda verdicts: verdicts.map([*VERDICTS].index), kind="stable")


def describe(lines: pd.DataFrame) -> str:
    """What the audit shows, in sentences made from its lines (Markdown)."""
    own = lines[~lines["kind"].isin(AGAIN)]
    said = [f"- Of {len(own)} printed numbers that follow from others in their paper: {say_verdicts(own)}."]
    for paper, title in results.PAPERS.items():
        said.append(f"- {title}, {(own['paper'] == paper).sum()} of them: {say_verdicts(own[own['paper'] == paper])}.")
    wrong = own[own["verdict"] == "differs"]
    if len(wrong):
        said.append(f"- The {len(wrong)} that neither rounding nor averaging over runs excuses:")
    for found in wrong.to_dict("records"):
        said.append(f"  - {results.PAPERS[found['paper']]}, {found['where']} ({found['what']}): {found['printed']} "
                    f"printed, {found['recomputed']:g} recomputed.")  # fmt: skip
    for kind, places in zip(AGAIN, ("two tables of a paper", "two papers"), strict=True):
        again = lines[lines["kind"] == kind]
        said.append(f"- Of {len(again)} pairs of numbers that mean the same in {places}: {say_verdicts(again)}.")
    return "\n".join(said)


def say_verdicts(lines: pd.DataFrame) -> str:
    """The verdicts that occur, with how often."""
    counts = lines["verdict"].value_counts()
    return ", ".join(f"{counts[verdict]} {said}" for verdict, said in reversed(VERDICTS.items()) if verdict in counts)
