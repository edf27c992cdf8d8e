"""Datasets in tables, one instance per row: text pairs, relations with dummies in the text, Japanese documents.

A dataset in a known form needs one call of read_pairs or read_dummified. Readers raise StudyError, which names file and
line and quotes nothing, if a row has another width, a label is unknown, a text is blank, or an id is repeated.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from lib.benchmarks.instances import Instance, Labelled, Mention, Pair, Relation
from lib.errors import StudyError
from lib.reading import name_file, read_csv, read_first_line, read_json_rows, read_rows

CHEMPROT_LABELS = ("false", "CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9")  # in the order of Lim and Kang's numbers
DDI_LABELS = ("DDI-false", "DDI-mechanism", "DDI-effect", "DDI-advise", "DDI-int")
LIM_MEMBERS = {"train": "training_SNLIformat", "dev": "develop_SNLIformat", "test": "test_SNLIformat"}
KINDS = {
    "@CHEMICAL$": "CHEMICAL", "@DISEASE$": "DISEASE", "@DRUG$": "DRUG", "@GENE$": "GENE",
    "BC6ENTC": "CHEMICAL", "BC6ENTG": "GENE", "bc6entc": "CHEMICAL", "bc6entg": "GENE",
}  # fmt: skip
POSTED = re.compile(r"([^\n]+)\n「(.*)」\s*", re.DOTALL)  # JMED-LLM's question, and the document it is about
QUOTED = re.compile(r'"((?:[^"]|"")*)"')
Labels = Collection[str] | Mapping[str, str] | tuple[float, float]  # the study's labels, or a range of scores


def read_biosses(path: Path) -> list[Pair]:
    """Read BIOSSES in BLURB's form: sentence pairs with a score of 0 to 4. Source: Gu et al. 2021, section 2.3.4."""
    return read_pairs(path, "pair_id sent1 sent2 score", (0.0, 4.0))


def read_medsts(path: Path) -> list[Pair]:
    """Read MedSTS (ClinicalSTS 2018): sentence pairs scored 0 to 5. Source: Wang et al. 2020; Peng et al. 2019.

    The original form has three columns and no header. BLUE's form has a header and more columns, of which these are the
    last three. Ids come from BLUE's column `index`; without it they are running numbers from 1.
    """
    columns = read_first_line(path).split("\t")
    has_header = columns[-3:] == ["sentence1", "sentence2", "score"]
    columns = columns if has_header else ["sentence1", "sentence2", "score"]
    take = f"{'index' if 'index' in columns else '-'} sentence1 sentence2 score"
    return read_pairs(path, " ".join(columns), (0.0, 5.0), take, header=has_header)


def read_mednli(path: Path) -> list[Pair]:
    """Read MedNLI: premise and hypothesis. Source: Romanov and Shivade 2018."""
    labels = ("entailment", "contradiction", "neutral")
    return read_pairs(path, "pairID sentence1 sentence2 gold_label", labels, in_json=True)


def read_pubmedqa(path: Path) -> list[Pair]:
    """Read PubMedQA in BLURB's form: a question, and the abstract without its conclusion.

    Source: Gu et al. 2021, 2.3.6.
    """
    return read_pairs(path, "id sentence1 sentence2 label", ("yes", "no", "maybe"), in_json=True)


def read_yesno(path: Path) -> list[Pair]:
    """Read BioASQ in BLURB's form: a question, and its snippets joined by spaces.

    Source: Gu et al. 2021, section 2.3.6.
    """
    return read_pairs(path, "id question snippets label", ("yes", "no"), header=False)


def read_yesno_ideal(path: Path) -> list[Pair]:
    """Read BioASQ 8b in Bio-ELECTRA's form: a question, and the expert's ideal answer. Source: Ozyurt 2020, 3.1."""
    labels, take = {"1": "yes", "0": "no"}, "- question ideal_answer yesno_label"
    return read_pairs(path, "yesno_label question ideal_answer", labels, take)


def read_candidates(path: Path) -> list[Pair]:
    """Read Bio-ELECTRA's reranking data: a BioASQ question, and a sentence that answers it (1) or not (0).

    A sentence may repeat under a question (73 times in the test set). Source: Ozyurt 2020, 3.1.
    """
    take = "- question answer_candidate label"
    return read_pairs(path, "label question answer_candidate", ("0", "1"), take, grouped=True)


def read_gad(path: Path, member: str = "") -> list[Relation]:
    """Read GAD or EU-ADR in BioBERT's, BLURB's or Bio-ELECTRA's files, or one member of BioBERT's ten-fold archive.

    Files have three columns under the header `index sentence label`, or two and no header; then the id is the row
    number from 0. Rows repeat: of GAD's 5,330, 5,122 are distinct. Source: Lee et al. 2020, Table 3; Gu et al. 2021,
    2.3.3; Ozyurt 2020, Table 1.
    """
    has_header = read_first_line(path, member) == "index\tsentence\tlabel"
    columns, take = ("index sentence label", "") if has_header else ("sentence label", "- sentence label")
    dummies = "@GENE$", "@DISEASE$"
    return read_dummified(path, columns, dummies, ("0", "1"), take, header=has_header, member=member, first=0)


def read_ddi_table(path: Path) -> list[Relation]:
    """Read BLURB's form of the DDI corpus, with `@DRUG$` twice or `@DRUG-DRUG$`. Source: BLURB's scripts."""
    return read_dummified(path, "id text label", ("@DRUG$", "@DRUG$"), DDI_LABELS, alone=("@DRUG-DRUG$",))


def read_chemprot_table(path: Path) -> list[Relation]:
    """Read BLURB's form of ChemProt, with `@CHEMICAL$` and `@GENE$`, or `@CHEM-GENE$`. Source: BLURB's scripts."""
    return read_dummified(path, "id text label", ("@CHEMICAL$", "@GENE$"), CHEMPROT_LABELS, alone=("@CHEM-GENE$",))


def read_chemprot_lim(archive: Path, member: str) -> list[Relation]:
    """Read Lim and Kang's form of ChemProt, which BioBERT used: lower-case words with bc6entc, bc6entg and bc6other.

    `archive`: a zip of tables (LIM_MEMBERS) with a label of 0 to 5, parse, words separated by `, `, PMID and the two
    ids in text order. In 24, 6 and 15 rows of the splits, one of the two dummies is missing; both mentions are then at
    the other. Source: Lim and Kang 2018; Lee et al. 2020.
    """
    columns, take, dummies = "label parse words pmid one two", "pmid.one.two words label", ("bc6entc", "bc6entg")
    labels = {str(number): label for number, label in enumerate(CHEMPROT_LABELS)}
    return read_dummified(archive, columns, dummies, labels, take, alone=dummies, member=member, clean=drop_commas)


def read_chemprot_bioelectra(path: Path) -> list[Relation]:
    """Read Bio-ELECTRA's form of ChemProt: Lim and Kang's in upper case, without the first row of each split.

    Texts with quotation marks are quoted in the files and returned unquoted. Source: Ozyurt 2020, Table 1; the
    repository SciCrunch/bio_electra.
    """
    labels, dummies = {"False": "false"} | {label: label for label in CHEMPROT_LABELS[1:]}, ("BC6ENTC", "BC6ENTG")
    columns, take = "sentence label", "- sentence label"
    return read_dummified(path, columns, dummies, labels, take, header=True, alone=dummies, clean=unquote)


def read_docclsjp(path: Path) -> list[Labelled]:
    """Read ouBioBERT's DocClsJp, which is not public: Japanese articles with one of 22 disease categories.

    The form is this study's own: CSV with the columns id, text, label. Source: Wada et al. 2020, section 3.1.
    """

    def documents() -> Iterator[tuple[str, Labelled]]:
        for location, row in read_csv(path, ["id", "text", "label"]):
            if not row["text"].strip() or not row["label"].strip():
                raise StudyError(f"{location}: a blank text or label")
            yield location, Labelled(row["id"], (row["text"],), (row["label"],))

    return collect(path, documents())


def read_jmed(path: Path) -> list[Labelled]:
    """Read JMED-LLM's Japanese documents, with the right option in words: CRADE, RRTNM or SMDIS.

    A row has a question on one line, then a document in 「」. They become the two `sentences`, because one document may
    come with up to eight questions. Ids are running numbers from 1. Source: JMED-LLM (sociocom), datasets.
    """

    def documents() -> Iterator[tuple[str, Labelled]]:
        rows = read_csv(path, ["tag", "question", "optionA", "answer"])
        for number, (location, row) in enumerate(rows, start=1):
            match = POSTED.fullmatch(row["question"])
            option = row.get(f"option{row['answer']}", "")
            if not match or not match[2].strip() or not option.strip():
                raise StudyError(
                    f"{location}: expected a question over a document in 「」, and the letter of an option"
                )
            yield location, Labelled(str(number), match.groups(), (option,))

    return collect(path, documents())


def read_pairs(
    path: Path, columns: str, labels: Labels, take: str = "", in_json: bool = False, header: bool = True,
    grouped: bool = False,
) -> list[Pair]:  # fmt: skip
    """Read text pairs with a label, or with a score within a range.

    `columns`, `header`: as in read_rows. `take`: the columns of id, first text, second text and label, if not all in
    this order; `-` for the id means running numbers from 1. `in_json`: the file has JSON lines. `grouped`: pairs with
    the same first text are ranked together.
    """
    id_column, first_column, second_column, label_column = (take or columns).split()
    groups: dict[str, str] = {}

    def pairs() -> Iterator[tuple[str, Pair]]:
        rows = read_json_rows(path, columns) if in_json else read_rows(path, columns, header)
        for number, (location, row) in enumerate(rows, start=1):
            first = row[first_column]
            second = row[second_column]
            if not first.strip() or not second.strip():
                raise StudyError(f"{location}: one of the two texts is blank")
            group = ""
            if grouped:
                next_group = str(len(groups) + 1)
                group = groups.setdefault(first, next_group)
            id = str(number) if id_column == "-" else row[id_column]
            label = check_label(location, row[label_column], labels)
            yield location, Pair(id, first, second, label, group)

    return collect(path, pairs())


def read_dummified(
    path: Path, columns: str, dummies: tuple[str, str], labels: Labels, take: str = "", *, header: bool = False,
    alone: tuple[str, ...] = (), member: str = "", clean: Callable[[str, str], str] | None = None, first: int = 1,
) -> list[Relation]:  # fmt: skip
    """Read relations whose text has dummies in place of the two mentions.

    `take`: the columns of id, text and label, if not all in this order; `-` for the id means numbers from `first`, and
    `pmid.one.two` joins three columns, of which the last two are the ids of the mentions. `alone`: dummies that may
    stand for both mentions. `member`: of an archive. `clean(place, text)` returns a text as it is kept.
    """
    id_column, text_column, label_column = (take or columns).split()
    id_names = id_column.split(".")

    def relations() -> Iterator[tuple[str, Relation]]:
        rows = read_rows(path, columns, header, member)
        for number, (location, row) in enumerate(rows, start=first):
            text = row[text_column]
            if clean:
                text = clean(location, text)
            label = check_label(location, row[label_column], labels)
            places = find_dummies(location, text, dummies, alone)
            id_parts = [str(number)] if id_column == "-" else [row[name] for name in id_names]
            mention_ids = id_parts[1:] or ["", ""]
            mentions = [Mention(mention_id, *place) for mention_id, place in zip(mention_ids, places, strict=True)]
            id = ".".join(id_parts) if all(id_parts) else ""
            document = ""
            if id.count(".") > 1:
                document, _, _ = id.rsplit(".", 2)
            yield location, Relation(id, text, *mentions, label, masked=True, document=document)

    return collect(path, relations(), member)


def find_dummies(at: str, text: str, dummies: tuple[str, str], alone: tuple[str, ...]) -> list[tuple[str, int, int]]:
    """Return the kind, start and end of the two mentions of a text with dummies, in text order.

    Raises StudyError unless the text has both dummies, or one of `alone`.
    """
    known = (*dummies, *alone)
    pattern = "|".join(map(re.escape, known))
    matches = list(re.finditer(pattern, text))
    words = [match[0] for match in matches]
    if len(words) == 1 and words[0] in alone:
        words = dummies
        matches *= 2
    elif sorted(words) != sorted(dummies):
        expected = " and ".join(dummies)
        raise StudyError(f"{at}: expected {expected}, found {len(matches)} dummies")
    return [(KINDS[word], *match.span()) for word, match in zip(words, matches, strict=True)]


def drop_commas(at: str, text: str) -> str:
    """Return words separated by `, ` as a text."""
    return text.replace(", ", " ")


def unquote(at: str, text: str) -> str:
    """Return a text without its quotes. Raises StudyError if it has a quotation mark and is not quoted as a whole."""
    if '"' in text and not QUOTED.fullmatch(text):
        raise StudyError(f"{at}: a quotation mark in a text that is not quoted")
    return strip_quotes(text)


def strip_quotes(cell: str) -> str:
    """Return a cell that is quoted as a whole without its quotes, any other as it is."""
    match = QUOTED.fullmatch(cell)
    return match[1].replace('""', '"') if match else cell


def check_label(at: str, label: str, known: Labels) -> str | float:
    """Return the study's label, or a score. Raises StudyError if it is unknown or out of range."""
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
    """Return the instances of a file. Raises StudyError if there are none, or if an id is empty or repeated."""
    instances: dict[str, Instance] = {}
    for location, instance in rows:
        if not instance.id or instance.id in instances:
            raise StudyError(f"{location}: an id that is empty or came before")
        instances[instance.id] = instance
    if not instances:
        raise StudyError(f"{name_file(path, member)}: no rows in the file")
    return list(instances.values())
