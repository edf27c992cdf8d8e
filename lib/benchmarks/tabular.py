"""Datasets that are tables, an instance a row: pairs of texts, relations with dummies in the text, Japanese documents.

A set in a form that is here already is one call of read_pairs or read_dummified. A row of another width, another label,
a blank text, or an id that comes twice is a StudyError that names file and line and quotes nothing.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from lib.benchmarks.instances import Instance, Labelled, Mention, Pair, Relation
from lib.errors import StudyError
from lib.reading import name_file, read_lines, read_rows

YES_NO = ("yes", "no")
YES_NO_MAYBE = ("yes", "no", "maybe")
INFERENCE = ("entailment", "contradiction", "neutral")
CHEMPROT_LABELS = ("false", "CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9")  # in the order of Lim and Kang's numbers
DDI_LABELS = ("DDI-false", "DDI-mechanism", "DDI-effect", "DDI-advise", "DDI-int")
LIM_MEMBERS = {"train": "training_SNLIformat", "dev": "develop_SNLIformat", "test": "test_SNLIformat"}
KINDS = {
    "@CHEMICAL$": "CHEMICAL", "@DISEASE$": "DISEASE", "@DRUG$": "DRUG", "@GENE$": "GENE",
    "BC6ENTC": "CHEMICAL", "BC6ENTG": "GENE", "bc6entc": "CHEMICAL", "bc6entg": "GENE",
}  # fmt: skip
POSTED = re.compile(r"([^\n]+)\n「(.*)」\s*", re.DOTALL)  # what JMED-LLM asks, and the document that it asks it of
QUOTED = re.compile(r'"((?:[^"]|"")*)"')
Labels = Collection[str] | Mapping[str, str] | tuple[float, float]  # words, as the study has them, or a range of scores


def read_biosses(path: Path) -> list[Pair]:
    """BIOSSES in BLURB's form: sentences with a score of 0 to 4. Source: Gu et al. 2021, section 2.3.4."""
    return read_pairs(path, "pair_id sent1 sent2 score", "pair_id sent1 sent2 score", (0.0, 4.0))


def read_medsts(path: Path) -> list[Pair]:
    """MedSTS (ClinicalSTS 2018): sentences with a score of 0 to 5. Source: Wang et al. 2020; Peng et al. 2019.

    As its makers give it, three columns without header; or as BLUE has it, more columns of which these are the last
    three, under a header. Ids are BLUE's column `index`, else running numbers from 1.
    """
    columns = next(read_lines(path), (1, ""))[1].split("\t")
    headed = columns[-3:] == ["sentence1", "sentence2", "score"]
    columns = columns if headed else ["sentence1", "sentence2", "score"]
    id = "index" if "index" in columns else "-"
    return read_pairs(path, " ".join(columns), f"{id} sentence1 sentence2 score", (0.0, 5.0), header=headed)


def read_mednli(path: Path) -> list[Pair]:
    """MedNLI: premise and hypothesis. Source: Romanov and Shivade 2018."""
    columns = "pairID sentence1 sentence2 gold_label"
    return read_pairs(path, columns, columns, INFERENCE, "jsonl")


def read_pubmedqa(path: Path) -> list[Pair]:
    """PubMedQA in BLURB's form: a question, and the abstract without its conclusion. Source: Gu et al. 2021, 2.3.6."""
    return read_pairs(path, "id sentence1 sentence2 label", "id sentence1 sentence2 label", YES_NO_MAYBE, "jsonl")


def read_yesno(path: Path) -> list[Pair]:
    """BioASQ in BLURB's form: a question, and its snippets joined by spaces. Source: Gu et al. 2021, section 2.3.6."""
    return read_pairs(path, "id question snippets label", "id question snippets label", YES_NO, header=False)


def read_yesno_ideal(path: Path) -> list[Pair]:
    """BioASQ 8b as Bio-ELECTRA takes it: a question, and the expert's ideal answer. Source: Ozyurt 2020, 3.1."""
    columns = "yesno_label question ideal_answer"
    return read_pairs(path, columns, "- question ideal_answer yesno_label", {"1": "yes", "0": "no"})


def read_candidates(path: Path) -> list[Pair]:
    """Bio-ELECTRA's reranker: a question of BioASQ, and a sentence that answers it (1) or not. Ozyurt 2020, 3.1.

    A sentence may stand twice under a question (73 times in the test set).
    """
    columns = "label question answer_candidate"
    return read_pairs(path, columns, "- question answer_candidate label", ("0", "1"), grouped=True)


def read_gad(path: Path, member: str = "") -> list[Relation]:
    """GAD or EU-ADR in BioBERT's, BLURB's or Bio-ELECTRA's files, or one member of BioBERT's archive of ten folds.

    Three columns under the header `index sentence label`, or two without header, when the id is the number of the row
    from 0. Rows repeat: GAD has 5,330 of which 5,122 are distinct. Source: Lee et al. 2020, Table 3; Gu et al. 2021,
    2.3.3; Ozyurt 2020, Table 1.
    """
    headed = next(read_lines(path, member), (1, ""))[1] == "index\tsentence\tlabel"
    columns, take = ("index sentence label",) * 2 if headed else ("sentence label", "- sentence label")
    dummies = "@GENE$", "@DISEASE$"
    return read_dummified(path, columns, take, dummies, ("0", "1"), header=headed, member=member, first=0)


def read_ddi_table(path: Path) -> list[Relation]:
    """BLURB's form of the DDI corpus, with `@DRUG$` twice or `@DRUG-DRUG$`. Source: BLURB's scripts."""
    dummies, both = ("@DRUG$", "@DRUG$"), ("@DRUG-DRUG$",)
    return read_dummified(path, "id text label", "id text label", dummies, DDI_LABELS, alone=both)


def read_chemprot_table(path: Path) -> list[Relation]:
    """BLURB's form of ChemProt, with `@CHEMICAL$` and `@GENE$`, or `@CHEM-GENE$`. Source: BLURB's scripts."""
    dummies, both = ("@CHEMICAL$", "@GENE$"), ("@CHEM-GENE$",)
    return read_dummified(path, "id text label", "id text label", dummies, CHEMPROT_LABELS, alone=both)


def read_chemprot_lim(archive: Path, member: str) -> list[Relation]:
    """Lim and Kang's form of ChemProt, which BioBERT used: lower-case words with bc6entc, bc6entg and bc6other.

    `archive`: a zip of tables (LIM_MEMBERS) of label 0 to 5, parse, words separated by `, `, PMID and the two ids in
    text order. In 24, 6 and 15 rows of the splits one of the two dummies is missing; both mentions then stand at the
    other. Source: Lim and Kang 2018; Lee et al. 2020.
    """
    columns, take, dummies = "label parse words pmid one two", "pmid.one.two words label", ("bc6entc", "bc6entg")
    labels = {str(number): label for number, label in enumerate(CHEMPROT_LABELS)}
    return read_dummified(archive, columns, take, dummies, labels, alone=dummies, member=member, between=", ")


def read_chemprot_bioelectra(path: Path) -> list[Relation]:
    """Bio-ELECTRA's form of ChemProt: Lim and Kang's without the first row of each split, in capitals.

    Texts with quotation marks are quoted, and are given without. Source: Ozyurt 2020, Table 1; the repository
    SciCrunch/bio_electra.
    """
    labels, dummies = {"False": "false"} | {label: label for label in CHEMPROT_LABELS[1:]}, ("BC6ENTC", "BC6ENTG")
    columns, take = "sentence label", "- sentence label"
    return read_dummified(path, columns, take, dummies, labels, header=True, alone=dummies, quoted=True)


def read_docclsjp(path: Path) -> list[Labelled]:
    """Japanese articles with one of 22 categories of disease: ouBioBERT's DocClsJp, which is not public.

    CSV with the columns id, text, label, in a form of the study's own. Source: Wada et al. 2020, section 3.1.
    """

    def documents() -> Iterator[tuple[str, Labelled]]:
        for at, row in read_rows(path, "id text label", "csv"):
            if not row["text"].strip() or not row["label"].strip():
                raise StudyError(f"{at}: a blank text or label")
            yield at, Labelled(row["id"], (row["text"],), (row["label"],))

    return collect(path, documents())


def read_jmed(path: Path) -> list[Labelled]:
    """Japanese documents of JMED-LLM with the right one of the options, in words: CRADE, RRTNM or SMDIS.

    A question is one line and a document in 「」; they are the two `sentences`, since one document is asked of up to
    eight times. Ids are running numbers from 1. Source: JMED-LLM (sociocom), datasets.
    """

    def documents() -> Iterator[tuple[str, Labelled]]:
        rows = read_rows(path, "tag question optionA answer", "csv")
        for number, (at, row) in enumerate(rows, start=1):
            posted = POSTED.fullmatch(row["question"])
            option = row.get(f"option{row['answer']}", "")
            if not posted or not posted[2].strip() or not option.strip():
                raise StudyError(f"{at}: expected a question over a document in 「」, and the letter of an option")
            yield at, Labelled(str(number), posted.groups(), (option,))

    return collect(path, documents())


def read_pairs(
    path: Path, columns: str, take: str, labels: Labels, form: str = "tsv", header: bool = True, grouped: bool = False
) -> list[Pair]:
    """Pairs of texts with a label, or a score within a range.

    `columns`, `form`, `header`: as in read_rows. `take`: those of id, first text, second text and label; `-` for ids
    that are running numbers from 1. `grouped`: pairs with one first text are ranked together.
    """
    id, first, second, label = take.split()
    groups: dict[str, str] = {}

    def pairs() -> Iterator[tuple[str, Pair]]:
        rows = read_rows(path, columns, form, header)
        for number, (at, row) in enumerate(rows, start=1):
            texts = row[first], row[second]
            if not all(text.strip() for text in texts):
                raise StudyError(f"{at}: one of the two texts is blank")
            group = ""
            if grouped:
                group = groups.setdefault(row[first], str(len(groups) + 1))
            name = str(number) if id == "-" else row[id]
            gold = check_label(at, row[label], labels)
            yield at, Pair(name, *texts, gold, group)

    return collect(path, pairs())


def read_dummified(
    path: Path, columns: str, take: str, dummies: tuple[str, str], labels: Labels, *, header: bool = False,
    alone: tuple[str, ...] = (), member: str = "", between: str = "", quoted: bool = False, first: int = 1,
) -> list[Relation]:  # fmt: skip
    """Relations whose text has dummies in the places of its two mentions.

    `take`: the columns of id, text and label; `-` for ids that are numbers from `first` on, `pmid.one.two` for three
    that are joined, the last two the ids of the mentions. `alone`: dummies of which one may stand for both mentions;
    `member`: of an archive; `between`: what stands between the words, in place of a space; `quoted`: texts with
    quotation marks are quoted, and are given without.
    """
    ids, text_column, label_column = take.split()

    def relations() -> Iterator[tuple[str, Relation]]:
        rows = read_rows(path, columns, "tsv", header, member)
        for number, (at, row) in enumerate(rows, start=first):
            text = row[text_column]
            if quoted:
                text = unquote(at, text)
            if between:
                text = text.replace(between, " ")
            label = check_label(at, row[label_column], labels)
            one, other = find_dummies(at, text, dummies, alone)
            names = [str(number)] if ids == "-" else [row[name] for name in ids.split(".")]
            if len(names) > 1:
                _, one_id, other_id = names
                one, other = one._replace(id=one_id), other._replace(id=other_id)
            id = ".".join(names) if all(names) else ""
            document = id.rsplit(".", 2)[0] if id.count(".") > 1 else ""
            yield at, Relation(id, text, one, other, label, masked=True, document=document)

    return collect(path, relations(), member)


def find_dummies(at: str, text: str, dummies: tuple[str, str], alone: tuple[str, ...]) -> tuple[Mention, Mention]:
    """The two mentions of a text with dummies, without ids, in text order; StudyError when it does not have both."""
    matches = list(any_of(*dummies, *alone).finditer(text))
    words = [match[0] for match in matches]
    spans = [match.span() for match in matches]
    if len(words) == 1 and words[0] in alone:
        words, spans = dummies, spans * 2
    elif sorted(words) != sorted(dummies):
        raise StudyError(f"{at}: expected {dummies[0]} and {dummies[1]}, found {len(matches)} dummies")
    first, second = (Mention("", KINDS[word], *span) for word, span in zip(words, spans, strict=True))
    return first, second


@cache
def any_of(*words: str) -> re.Pattern:
    return re.compile("|".join(map(re.escape, words)))


def unquote(at: str, text: str) -> str:
    quoted = QUOTED.fullmatch(text)
    if '"' in text and not quoted:
        raise StudyError(f"{at}: a quotation mark in a text that is not quoted")
    return quoted[1].replace('""', '"') if quoted else text


def check_label(at: str, label: str, known: Labels) -> str | float:
    """A label as the study has it, or a score; StudyError for one that is not known, or out of range."""
    if isinstance(known, tuple) and isinstance(known[0], float):
        low, high = known
        try:
            score = float(label)
        except ValueError:
            score = low - 1
        if not low <= score <= high:
            raise StudyError(f"{at}: expected a score of {low:g} to {high:g}")
        return score
    if label not in known:
        raise StudyError(f"{at}: expected the label {', '.join(known)}")
    return known[label] if isinstance(known, Mapping) else label


def collect(path: Path, rows: Iterable[tuple[str, Instance]], member: str = "") -> list:
    """The instances of a file; StudyError for none, and for an id that is empty or came before."""
    instances: dict[str, Instance] = {}
    for at, one in rows:
        if not one.id or one.id in instances:
            raise StudyError(f"{at}: an id that is empty or came before")
        instances[one.id] = one
    if not instances:
        raise StudyError(f"{name_file(path, member)}: no rows in the file")
    return list(instances.values())
