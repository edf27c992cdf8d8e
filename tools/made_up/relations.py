"""Made-up relation datasets in every format that is read; a sentence's verb tells its label."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from lib.benchmarks.registry import CHEMPROT_FORMS
from lib.benchmarks.tabular import LIM_MEMBERS
from tools.made_up.files import write_gzip, write_lines, write_tar, write_text, write_zip

SIZES = {"train": 48, "dev": 40, "test": 40}
FOLDS, POOL = 10, 80  # all folds of a dataset without fixed splits share one pool of sentences
# Label -> active and passive verb. ChemProt's labels are groups of relations; RELATION_NAMES has one name for each.
CHEMPROT = {
    "false": ("was measured beside", "was measured beside"),
    "CPR:3": ("activates", "is activated by"),
    "CPR:4": ("inhibits", "is inhibited by"),
    "CPR:5": ("is an agonist of", "is stimulated by"),
    "CPR:6": ("is an antagonist of", "is blocked by"),
    "CPR:9": ("is consumed by", "consumes"),
}
RELATION_NAMES = {
    "CPR:3": "ACTIVATOR", "CPR:4": "INHIBITOR", "CPR:5": "AGONIST", "CPR:6": "ANTAGONIST", "CPR:9": "SUBSTRATE",
}  # fmt: skip
DDI = {
    "DDI-false": ("was compared with", "was compared with"),
    "DDI-mechanism": ("raises the level of", "is raised by"),
    "DDI-effect": ("strengthens the effect of", "is made stronger by"),
    "DDI-advise": ("should not be given with", "should not be given with"),
    "DDI-int": ("interacts with", "interacts with"),
}
GAD = {"0": ("has no link with", "has no link with"), "1": ("raises the risk of", "is more frequent with")}
ENDINGS = ["in {} patients.", "in {} cases of long standing.", 'in {} "late" cases.']
DDI_FOLDERS = {"train": "Train", "dev": "Train", "test": "Test/Test for DDI Extraction task"}


class Statement(NamedTuple):
    """A sentence about two names, and their relation. `turned`: the second kind of name comes first."""

    label: str
    before: str
    first: str
    middle: str
    second: str
    after: str
    turned: bool

    def write(self, first: str = "", second: str = "") -> str:
        """Return the sentence, with the two names replaced if other words are given."""
        return "".join((self.before, first or self.first, self.middle, second or self.second, self.after))

    @property
    def places(self) -> tuple[tuple[int, str], tuple[int, str]]:
        """Where the two names begin, each with the name."""
        first = len(self.before)
        return (first, self.first), (first + len(self.first) + len(self.middle), self.second)

    def mask(self, one: str, other: str) -> str:
        """Return the sentence with a dummy for each kind of name."""
        return self.write(other, one) if self.turned else self.write(one, other)


def make_statements(
    rng: random.Random, series: str, n: int, verbs: dict[str, tuple[str, str]], ones: list[str], others: list[str]
) -> list[Statement]:
    """Make statements of every label in turn, so that each fold has all labels; a number makes each unique."""
    labels, statements = list(verbs), []
    for number in range(n):
        label = labels[(number + number // 10) % len(labels)]
        turned = rng.random() < 0.4
        agent = rng.choice(ones)
        target = rng.choice([name for name in others if name != agent])
        first, second = (target, agent) if turned else (agent, target)
        after = rng.choice(ENDINGS).format(rng.randint(2, 99))
        before = f"In series {series} {number}, "
        statements.append(Statement(label, before, first, f" {verbs[label][turned]} ", second, f" {after}", turned))
    return statements


def write(folder: Path, rng: random.Random, names: dict[str, list[str]]) -> None:
    """Write every relation dataset below a folder; the same generator and names give the same bytes."""
    genes = [f"{name[:4].upper()}{number % 9 + 1}" for number, name in enumerate(dict.fromkeys(names["device"]))]
    drugs, diseases = names["drug"], names["disease"]
    sets = {split: make_statements(rng, f"chemprot {split}", n, CHEMPROT, drugs, genes) for split, n in SIZES.items()}
    write_chemprot(folder / "re", sets)
    sets = {split: make_statements(rng, f"ddi {split}", n, DDI, drugs, drugs) for split, n in SIZES.items()}
    write_ddi(folder / "re/ddi", sets)
    write_folds(
        folder / "re",
        make_statements(rng, "gad", POOL, GAD, genes, diseases),
        make_statements(rng, "euadr", POOL, GAD, genes, diseases),
    )


def write_chemprot(folder: Path, sets: dict[str, list[Statement]]) -> None:
    """Write the corpus, BLURB's file, and the three datasets derived from the corpus.

    A document has four sentences, the first of which is its title.
    """
    lim = {}
    for split, statements in sets.items():
        tables: dict[str, list[str]] = {"abstracts": [], "entities": [], "relations": []}
        blurb, lim[split] = [], []
        for number in range(0, len(statements), 4):
            pmid = str(40_000_000 + 1000 * list(sets).index(split) + number)
            title, *rest = statements[number : number + 4]
            tables["abstracts"].append(
                "\t".join((pmid, title.write(), " ".join(sentence.write() for sentence in rest)))
            )
            start = 0
            for position, statement in enumerate((title, *rest)):
                ids = f"T{2 * position + 1}", f"T{2 * position + 2}"
                tables["entities"] += entity_lines(pmid, ids, start, statement)
                start += len(statement.write()) + 1  # a tab after the title, a space between sentences
                chemical, gene = reversed(ids) if statement.turned else ids
                arguments = f"Arg1:{chemical}\tArg2:{gene}"
                if statement.label != "false":
                    name = RELATION_NAMES[statement.label]
                    tables["relations"].append(f"{pmid}\t{statement.label}\tY \t{name}\t{arguments}")
                elif position:
                    tables["relations"].append(f"{pmid}\tCPR:10\tN \tNOT\t{arguments}")
                text = statement.mask("@CHEMICAL$", "@GENE$")
                blurb.append(f"{pmid}.{ids[0]}.{ids[1]}\t{text}\t{statement.label}")
                lim[split].append(lim_line(pmid, ids, statement))
        for table, lines in tables.items():
            write_lines(folder / "chemprot" / f"{CHEMPROT_FORMS[split].format(table)}.tsv", lines)
        if split == "dev":
            write_gzip(folder / "chemprot-blurb/dev.tsv.gz", "\n".join(blurb) + "\n")
        write_gzip(folder / f"chemprot-bioelectra/{split}.tsv.gz", "\r\n".join(bioelectra_lines(statements)) + "\r\n")
        write_lines(folder / f"chemprot-scibert/{split}.txt", scibert_lines(statements))
    members = {LIM_MEMBERS[split]: "\n".join(lines) + "\n" for split, lines in lim.items()}
    members["train_whole_SNLIformat"] = members[LIM_MEMBERS["train"]] + members[LIM_MEMBERS["dev"]]
    write_zip(folder / "chemprot-recursive/chemprot-data_SPINN.zip", members)


def entity_lines(pmid: str, ids: tuple[str, str], start: int, statement: Statement) -> Iterator[str]:
    kinds = ("GENE-Y", "CHEMICAL") if statement.turned else ("CHEMICAL", "GENE-N")
    for id, kind, (offset, name) in zip(ids, kinds, statement.places, strict=True):
        yield f"{pmid}\t{id}\t{kind}\t{start + offset}\t{start + offset + len(name)}\t{name}"


def lim_line(pmid: str, ids: tuple[str, str], statement: Statement) -> str:
    words = statement.mask("bc6entc", "bc6entg").lower().replace(",", " ,").replace(".", " .").split()
    label = list(CHEMPROT).index(statement.label)
    return f"{label}\t( {' '.join(words)} )\t{', '.join(words)}\t{pmid}\t{ids[0]}\t{ids[1]}"


def bioelectra_lines(statements: list[Statement]) -> Iterator[str]:
    yield "sentence\tlabel"
    for statement in statements[1:]:  # the real files lack the first row of their source
        text = statement.mask("BC6ENTC", "BC6ENTG")
        if '"' in text:
            text = '"' + text.replace('"', '""') + '"'
        yield f"{text}\t{'False' if statement.label == 'false' else statement.label}"


def scibert_lines(statements: list[Statement]) -> Iterator[str]:
    for statement in statements:
        if statement.label != "false":
            text = statement.write(f"<< {statement.first} >>", f"[[ {statement.second} ]]")
            yield json.dumps({"text": text, "label": RELATION_NAMES[statement.label], "metadata": []})


def write_ddi(folder: Path, sets: dict[str, list[Statement]]) -> None:
    """Write the corpus, ten sentences and a blank one a document, with its split lists, and BLURB's tables."""
    members, count = {}, 0
    for split, statements in sets.items():
        names, table = [], []
        for number in range(0, len(statements), 10):
            source = "DrugBank" if number % 20 else "MedLine"
            id, count = f"DDI-{source}.d{count}", count + 1
            name = f"{source}/made up {count}.xml"
            names.append(f"{'test' if split == 'test' else 'train'}_dataset/{name}")
            document = statements[number : number + 10]
            sentences = [ddi_sentence(f"{id}.s{position}", statement) for position, statement in enumerate(document)]
            body = "".join([*sentences, f'    <sentence id="{id}.s{len(document)}" text=" "/>\n'])
            members[f"DDICorpus/{DDI_FOLDERS[split]}/{name}"] = (
                f'<?xml version="1.0" encoding="UTF-8"?>\n<document id="{id}">\n{body}</document>\n'
            )
            for position, statement in enumerate(document):
                table.append(f"{id}.s{position}.p0\t{statement.mask('@DRUG$', '@DRUG$')}\t{statement.label}")
        write_lines(folder / f"splits/{split}_files.tsv", names)
        if split != "train":
            write_lines(folder / f"blurb/{split}.tsv", table)
    write_zip(folder / "DDICorpus-2013.zip", members)


def ddi_sentence(id: str, statement: Statement) -> str:
    entities = "".join(
        f'        <entity id="{id}.e{number}" charOffset="{start}-{start + len(name) - 1}" type="drug" '
        f"text={quoteattr(name)}/>\n"
        for number, (start, name) in enumerate(statement.places)
    )
    kind = statement.label.removeprefix("DDI-")
    truth = 'ddi="false"' if kind == "false" else f'ddi="true" type="{kind}"'
    pair = f'        <pair id="{id}.p0" e1="{id}.e0" e2="{id}.e1" {truth}/>\n'
    return f'    <sentence id="{id}" text={quoteattr(statement.write())}>\n{entities}{pair}    </sentence>\n'


def write_folds(folder: Path, gad: list[Statement], euadr: list[Statement]) -> None:
    """Write ten folds of GAD in an archive and of EU-ADR in folders, and the splits made of GAD's first fold."""
    members = {}
    for fold in range(1, FOLDS + 1):
        train, test = divide(gad, fold)
        members[f"GAD/{fold}/dev.tsv"] = ""
        members[f"GAD/{fold}/train.tsv"] = gad_table(train, header=False)
        members[f"GAD/{fold}/test.tsv"] = gad_table(test, header=True)
        train, test = divide(euadr, fold)
        write_text(folder / f"euadr/{fold}/train.tsv", gad_table(train, header=False))
        write_text(folder / f"euadr/{fold}/test.tsv", gad_table(test, header=True))
    write_tar(folder / "gad/gad-biobert-10fold.tar.gz", members)
    train, test = divide(gad, 1)
    for name, statements in (("train", train[:-8]), ("dev", train[-8:]), ("test", test)):
        write_text(folder / f"gad/blurb/{name}.tsv", gad_table(statements, header=True))
    for name, statements in (("train", train), ("dev", test), ("test", test)):
        write_text(folder / f"gad/bioelectra/{name}.tsv", gad_table(statements, header=name != "train"))


def divide(statements: list[Statement], fold: int) -> tuple[list[Statement], list[Statement]]:
    """Return the training and test set of a fold; every tenth statement is in the test set."""
    test = statements[fold - 1 :: FOLDS]
    return [statement for statement in statements if statement not in test], test


def gad_table(statements: list[Statement], header: bool) -> str:
    rows = [f"{statement.mask('@GENE$', '@DISEASE$')}\t{statement.label}\n" for statement in statements]
    if header:
        rows = ["index\tsentence\tlabel\n", *(f"{number}\t{row}" for number, row in enumerate(rows))]
    return "".join(rows)
