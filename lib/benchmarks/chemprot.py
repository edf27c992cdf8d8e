"""ChemProt (chemicals and proteins): the corpus split into sentences as in BLURB or BLUE, and SciBERT's form of it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from pathlib import Path

from lib.benchmarks.instances import Mention, Relation
from lib.benchmarks.standoff import find_span, locate_sentences
from lib.benchmarks.tabular import CHEMPROT_LABELS, check_label
from lib.errors import StudyError
from lib.reading import read_columns, read_json_rows

GROUPS = tuple(f"CPR:{number}" for number in range(11))
PAIRED = "CHEMICAL", "GENE"
KINDS = {"CHEMICAL": "CHEMICAL", "GENE-Y": "GENE", "GENE-N": "GENE"}
RELATION_TYPES = (
    "ACTIVATOR", "AGONIST", "AGONIST-ACTIVATOR", "AGONIST-INHIBITOR", "ANTAGONIST", "DOWNREGULATOR",
    "INDIRECT-DOWNREGULATOR", "INDIRECT-UPREGULATOR", "INHIBITOR", "PRODUCT-OF", "SUBSTRATE",
    "SUBSTRATE_PRODUCT-OF", "UPREGULATOR",
)  # fmt: skip
MARKED = re.compile(r"(.*?)<< (.*?) >>(.*?)\[\[ (.*?) \]\](.*)", re.DOTALL)
UNLEARNT = (  # part of the identity of results that use load_unlearnt, and shown beside them
    "ChemProt: NLTK's splitter without what its punkt has learnt, which is not at hand, makes 18,008, 11,279 and "
    "15,779 pairs; BLURB has 18,035, 11,268 and 15,745."
)
FETCH_PUNKT = "To get punkt: .venv/bin/python -m nltk.downloader punkt_tab"
Splitter = Callable[[str], Iterable[str]]
Span = tuple[int, int]  # the start and end of a sentence
Corpus = dict[str, tuple[str, str]]  # PMID -> title and abstract
Mentions = dict[str, dict[str, Mention]]  # PMID -> id -> mention, offsets in title TAB abstract
Groups = dict[tuple[str, str, str], list[str]]  # PMID, chemical, gene -> groups in the order of the file


@cache
def load_punkt() -> Splitter | None:
    """Return NLTK's English sentence splitter; None if its parameters are not at hand."""
    try:
        from nltk.tokenize.punkt import PunktTokenizer  # imported here because it takes two seconds

        return PunktTokenizer("english").tokenize
    except (ImportError, LookupError):
        return None


def load_unlearnt() -> Splitter:
    """Return NLTK's splitter without punkt's parameters, which needs no download but knows no abbreviations."""
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    return PunktSentenceTokenizer().tokenize


def read_chemprot(
    abstracts: Path,
    entities: Path,
    relations: Path,
    split_sentences: Splitter | None = None,
    left_out: Counter | None = None,
    blue: bool = False,
) -> list[Relation]:
    """Read every chemical-gene pair within a sentence of ChemProt, in BLURB's form or, with `blue`, in BLUE's.

    Files of the corpus: abstracts (PMID, title, abstract), entities (PMID, id, type, offsets, text), relations (PMID,
    group, evaluated or not, name, Arg1:chemical, Arg2:gene). Title and abstract, joined by a tab, are split into
    sentences and then at the tab. A mention across a boundary is in no pair, and a relation across sentences is lost. A
    pair has the group of its last line if that group is evaluated (CPR:3, 4, 5, 6, 9), else `false`. Ids are
    `pmid.Tx.Ty` in text order, the gene first if both begin at the same offset. `left_out` counts such mentions and
    such related pairs.

    The splitter decides how many pairs there are. NLTK's punkt, the default, gives BLURB's pairs; UNLEARNT describes
    the fallback.

    Raises StudyError if a line is malformed, an id is repeated, an entity is not at its offsets, a relation has unknown
    entities, or the splitter changes the text. Source: Gu et al. 2021, 2.3.3; BLURB's files, which are the same byte
    for byte once masked.
    """
    split = split_sentences or load_punkt() or load_unlearnt()
    cut = cut_and_merge if blue else cut_at_tab
    corpus = read_pmids(abstracts)
    mentions = read_mentions(entities, corpus)
    groups = read_groups(relations, mentions)
    labels = {pair: choose_labels(pair_groups, blue) for pair, pair_groups in groups.items()}
    pairs, paired_ids, inside_count = [], set(), 0
    for pmid, parts in corpus.items():
        text = "\t".join(parts)
        for start, end in cut(pmid, text, split):
            inside = [mention for mention in mentions[pmid].values() if start <= mention.start and mention.end <= end]
            inside_count += len(inside)
            chemicals, genes = ([mention for mention in inside if mention.kind == kind] for kind in PAIRED)
            for chemical, gene in product(chemicals, genes):
                key = pmid, chemical.id, gene.id
                paired_ids.add(key)
                in_order = (chemical, gene) if chemical.start < gene.start else (gene, chemical)
                id = ".".join(key if blue else (pmid, *(mention.id for mention in in_order)))
                arguments = [mention._replace(start=mention.start - start, end=mention.end - start)
                             for mention in in_order]  # fmt: skip
                for label in labels.get(key, ["false"]):
                    pairs.append(Relation(id, text[start:end], *arguments, label, document=pmid))
    if left_out is not None:
        left_out["mentions across the end of a sentence"] += sum(map(len, mentions.values())) - inside_count
        left_out["related pairs that are not in one sentence"] += sum(
            pair_labels != ["false"] for pair, pair_labels in labels.items() if pair not in paired_ids
        )
    return pairs


def read_chemprot_blue(
    abstracts: Path,
    entities: Path,
    relations: Path,
    split_sentences: Splitter | None = None,
    left_out: Counter | None = None,
) -> list[Relation]:
    """Read every chemical-gene pair within a sentence of ChemProt, as close to BLUE's form as possible.

    Files and errors are those of read_chemprot. A sentence ends only if it ends in `.`, `?` or `!`, but not `i.v.`, and
    the next begins with a capital. A pair with several evaluated groups yields an instance for each, all with the id
    `pmid.chemical.gene`. BLUE splits with spaCy's small English model and converts texts to ASCII; this reader splits
    with NLTK's punkt and keeps texts unchanged. BLUE prints the number of its positives, and scores test positives
    across sentences as missed. Source: Peng et al. 2019, Table 1; their repository ncbi-nlp/BLUE_Benchmark.
    """
    return read_chemprot(abstracts, entities, relations, split_sentences, left_out, blue=True)


def choose_labels(groups: list[str], blue: bool) -> list[str]:
    """Return the labels of a pair from its groups: BLUE's are all that are evaluated, BLURB's is the last if it is."""
    candidates = dict.fromkeys(groups) if blue else groups[-1:]
    return [group for group in candidates if group in CHEMPROT_LABELS] or ["false"]


def cut_at_tab(pmid: str, text: str, split: Splitter) -> list[Span]:
    tab, spans = text.index("\t"), []
    for start, end in locate_sentences(split(text), text, f"ChemProt document {pmid}"):
        spans += [(start, tab), (tab + 1, end)] if start <= tab < end else [(start, end)]
    return spans


def cut_and_merge(pmid: str, text: str, split: Splitter) -> list[Span]:
    text = text.replace("\t", " ")
    spans: list[Span] = []
    for start, end in locate_sentences(split(text), text, f"ChemProt document {pmid}"):
        if spans:
            previous = text[slice(*spans[-1])]
            is_complete = previous.endswith((".", "?", "!")) and not previous.endswith("i.v.")
            if not is_complete or not text[start:end][:1].isupper():
                spans[-1] = spans[-1][0], end
                continue
        spans.append((start, end))
    return spans


def read_chemprot_abstracts(abstracts: Path, *_: Path) -> list[str]:
    """Return the non-blank titles and abstracts of ChemProt, because pairs hold only some of their sentences.

    Takes all three files of a split, as the other readers do. Raises StudyError as in read_chemprot.
    """
    return [text for parts in read_pmids(abstracts).values() for text in parts if text.strip()]


def read_pmids(path: Path) -> Corpus:
    corpus: Corpus = {}
    for location, (pmid, title, abstract) in read_columns(path, 3):
        if not (pmid.isascii() and pmid.isdecimal()) or pmid in corpus:
            raise StudyError(f"{location}: no PMID of its own")
        corpus[pmid] = title, abstract
    return corpus


def read_mentions(path: Path, corpus: Corpus) -> Mentions:
    mentions: Mentions = {pmid: {} for pmid in corpus}
    for location, (pmid, id, kind, first, last, words) in read_columns(path, 6):
        if not re.fullmatch("T[0-9]{1,9}", id) or id in mentions.get(pmid, {}):
            raise StudyError(f"{location}: no entity id of its own, such as T1")
        kind = check_label(location, kind, KINDS)
        span = find_span(location, "\t".join(corpus.get(pmid, ())), first, last, words)
        mentions[pmid][id] = Mention(id, kind, *span)
    return mentions


def read_groups(path: Path, mentions: Mentions) -> Groups:
    groups: Groups = {}
    for location, (pmid, group, _, _, first, second) in read_columns(path, 6):
        check_label(location, group, GROUPS)
        document_mentions = mentions.get(pmid, {})
        chemical = document_mentions.get(first.removeprefix("Arg1:"))
        gene = document_mentions.get(second.removeprefix("Arg2:"))
        if not chemical or not gene or (chemical.kind, gene.kind) != PAIRED:
            raise StudyError(f"{location}: expected Arg1 of a chemical and Arg2 of a gene of its document")
        groups.setdefault((pmid, chemical.id, gene.id), []).append(group)
    return groups


def read_chemprot_scibert(path: Path) -> list[Relation]:
    """Read SciBERT's form of ChemProt: JSON lines of related pairs only, marked `<< first >>` and `[[ second ]]`.

    The marks are removed. They follow text order and do not distinguish the chemical from the gene, so both mentions
    have the kind ENTITY. Labels are the 13 relation names. Ids are line numbers. Raises StudyError if a line has
    another form or an unknown label. Source: Beltagy et al. 2019; the repository allenai/scibert.
    """
    pairs = []
    for number, (location, row) in enumerate(read_json_rows(path, "text label"), start=1):
        match = MARKED.fullmatch(row["text"])
        if not match:
            raise StudyError(f"{location}: expected a text with << >> and then [[ ]]")
        before, first, between, second, after = match.groups()
        start, other_start = len(before), len(before + first + between)
        mention = Mention("", "ENTITY", start, start + len(first))
        other = Mention("", "ENTITY", other_start, other_start + len(second))
        label = check_label(location, row["label"], RELATION_TYPES)
        pairs.append(Relation(str(number), before + first + between + second + after, mention, other, label))
    return pairs
