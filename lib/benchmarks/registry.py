"""The benchmark datasets: one registry row each. Where two papers make a set differently, both are here by name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from lib import provenance
from lib.benchmarks import (
    chemprot,
    classification,
    conll,
    i2b2,
    pairs,
    pico,
    pubtator,
    questions,
    relations,
    shareclef,
)
from lib.benchmarks.instances import Instance
from lib.corpora import records
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.study import params, paths

SPLITS = ("train", "dev", "test")
TRAIN_TEST = ("train", "test")


@dataclass(frozen=True)
class Dataset:
    """What is known of a dataset besides its text.

    `read` is called with the paths of a split's `files`, which lie below the data folder, may have .gz after the name
    and may hold {fold}; with `members`, then with the name of the split's file in that archive. `divide` takes the
    part of a split from a file that has no division: (instances, split, fold).
    """

    key: str
    title: str
    family: str  # tagging, pico, relations, similarity, inference, documents, answers, questions or ranking
    labels: str  # what is to be found
    metric: str  # a key of metrics.CARDS
    group: str  # of params/downloads.yaml: how to get it, and its licence
    read: Callable[..., Iterable[Instance]]
    files: dict[str, tuple[str, ...]]
    results: tuple[str, ...] = ()  # the published tables with scores on it
    access: str = "public"  # else registration or credentialed: no text may leave the data folder
    members: dict[str, str] = field(default_factory=dict)
    folds: int = 1
    divide: Callable[[list, str, int], list] | None = None
    negative: str | None = "false"  # of relations: the label that says none
    punkt: bool = False  # needs NLTK's sentence splitter
    natural: Callable[..., list[str]] | None = None  # whole texts of a split's files, where instances hold only parts
    overlapping: bool = False  # of tags: a word may have several
    asked: bool = False  # of documents: the first sentence is a question asked of the second
    language: str = "en"
    version: int = 1  # of what reads it: raised when the same files give other examples


def by_split(folder: str, ending: str = ".tsv", splits: Iterable[str] = SPLITS) -> dict[str, tuple[str, ...]]:
    """Files that are named for their splits."""
    return {split: (f"{folder}/{split}{ending}",) for split in splits}


def named(form: str, *names: str, splits: Iterable[str] = SPLITS) -> dict[str, tuple[str, ...]]:
    """Files of one form, `{}` standing for a name of each split's."""
    return {split: (form.format(name),) for split, name in zip(splits, names, strict=True)}


PUBTATOR = "ner/bc5cdr-pubtator/CDR_{}Set.PubTator.txt", "Training", "Development", "Test"
CHEMPROT_FORMS = {"train": "chemprot_training/chemprot_training_{}",
                  "dev": "chemprot_development/chemprot_development_{}",
                  "test": "chemprot_test_gs/chemprot_test_{}_gs"}  # fmt: skip
CHEMPROT = {
    split: tuple(f"re/chemprot/{form.format(what)}.tsv" for what in ("abstracts", "entities", "relations"))
    for split, form in CHEMPROT_FORMS.items()
}
DDI = {split: ("re/ddi/DDICorpus-2013.zip", f"re/ddi/splits/{split}_files.tsv") for split in SPLITS}
PICO = "ner/ebm-nlp-original"
I2B2 = "ner/i2b2-2010"
I2B2_FILES = {
    "train": tuple(f"{I2B2}/concept_assertion_relation_training_data/{site}" for site in ("beth", "partners")),
    "test": (f"{I2B2}/test_data", f"{I2B2}/reference_standard_for_test_data"),
}
HOC = {split: ("doccls/hoc/hoc-corpus.tar.gz", f"doccls/hoc/splits/{split}_pmid.tsv") for split in SPLITS}
FACTOID = "qa/bioasq-factoid-biobert/BioASQ-{}-factoid-{}b{}.json"


def factoid(year: int) -> dict[str, tuple[str, ...]]:
    """BioBERT's files of one edition: the training questions; for each of the five batches a test and its answers."""
    tests = (
        *(FACTOID.format("test", year, f"-{batch}") for batch in range(1, 6)),
        *(f"qa/bioasq-factoid-biobert/{year}B{batch}_golden.json" for batch in range(1, 6)),
    )
    return {"train": (FACTOID.format("train", year, ""),), "test": tests}


def read_abstracts(abstracts: Path, *_: Path) -> list[str]:
    """The titles and abstracts of ChemProt, of which the pairs hold only some sentences."""
    return chemprot.read_chemprot_abstracts(abstracts)


ROWS = [
    # Named entities. The sets of Crichton et al. 2017 are in their IOB form.
    Dataset("bc5cdr-chem", "BC5CDR, chemical", "tagging", "chemicals", "entity-f1", "bc5cdr-chem", conll.read,
            by_split("ner/bc5cdr-chem"), ("lee-4", "gu-6", "wada-7", "naseem-7")),
    Dataset("bc5cdr-disease", "BC5CDR, disease", "tagging", "diseases", "entity-f1", "bc5cdr-disease", conll.read,
            by_split("ner/bc5cdr-disease"), ("lee-4", "gu-6", "wada-7", "naseem-7")),
    Dataset("ncbi-disease", "NCBI-disease", "tagging", "diseases", "entity-f1", "ncbi-disease", conll.read,
            by_split("ner/ncbi-disease"), ("lee-4", "gu-6", "naseem-7", "ozyurt-4")),
    Dataset("bc2gm", "BC2GM", "tagging", "genes", "entity-f1", "bc2gm", conll.read, by_split("ner/bc2gm"),
            ("lee-4", "gu-6", "naseem-7", "ozyurt-4")),
    Dataset("jnlpba", "JNLPBA, five types as one", "tagging", "proteins, DNA, RNA, cell types and lines", "entity-f1",
            "jnlpba", conll.read_merged, by_split("ner/jnlpba"), ("gu-6",)),
    Dataset("jnlpba-biobert", "JNLPBA, BioBERT's version", "tagging", "proteins, DNA and RNA as one", "entity-f1",
            "jnlpba-biobert", conll.read, by_split("ner/jnlpba-biobert"), ("lee-4", "naseem-7")),
    Dataset("linnaeus", "LINNAEUS", "tagging", "species", "entity-f1", "linnaeus", conll.read, by_split("ner/linnaeus"),
            ("lee-4", "naseem-7", "ozyurt-4")),
    Dataset("s800", "Species-800", "tagging", "species", "entity-f1", "s800", conll.read, by_split("ner/s800"),
            ("lee-4", "naseem-7")),
    Dataset("bc4chemd", "BC4CHEMD", "tagging", "chemicals", "entity-f1", "bc4chemd", conll.read,
            by_split("ner/bc4chemd"), ("lee-4", "ozyurt-4")),
    Dataset("bc5cdr-chem-pubtator", "BC5CDR, chemical, from PubTator", "tagging", "chemicals", "entity-f1",
            "bc5cdr-pubtator", partial(pubtator.read_sentences, kind="Chemical"), named(*PUBTATOR)),
    Dataset("bc5cdr-disease-pubtator", "BC5CDR, disease, from PubTator", "tagging", "diseases", "entity-f1",
            "bc5cdr-pubtator", partial(pubtator.read_sentences, kind="Disease"), named(*PUBTATOR)),
    Dataset("ncbi-disease-pubtator", "NCBI-disease, from PubTator", "tagging", "diseases", "entity-f1",
            "ncbi-disease-pubtator", partial(pubtator.read_sentences, kind="Disease"),
            named("ner/ncbi-disease-pubtator/NCBI{}set_corpus.txt", "train", "develop", "test")),
    Dataset("i2b2-2010", "i2b2/VA 2010, concepts", "tagging", "problems, tests and treatments", "entity-f1",
            "i2b2-2010", i2b2.read_concepts, I2B2_FILES, ("lee-4",), "credentialed"),
    Dataset("share-clef-2013", "ShARe/CLEF 2013, task 1", "tagging", "disorders, also in pieces", "strict-span-f1",
            "share-clef", shareclef.read, shareclef.FILES, ("wada-7", "naseem-7"), "credentialed"),
    # PICO elements
    Dataset("ebm-pico", "EBM-NLP, original", "pico", "participants, interventions and outcomes, overlapping",
            "pico-macro-f1", "ebm-nlp-original", pico.read, dict.fromkeys(SPLITS, (PICO,)), ("gu-6",),
            members={split: split for split in SPLITS}, overlapping=True),
    Dataset("ebm-pico-blurb", "EBM-NLP, BLURB's files", "pico", "the same, one a word", "pico-macro-f1",
            "ebm-nlp-blurb", conll.read, by_split("ner/ebm-nlp-blurb")),
    Dataset("ebm-pico-scibert", "EBM-NLP, SciBERT's form", "pico", "the same, one a word", "pico-macro-f1", "ebm-nlp",
            conll.read_pico, by_split("ner/ebm-nlp", ".txt")),
    # Relations
    Dataset("chemprot", "ChemProt, BLURB's form", "relations", "five types, or false for every other pair",
            "relation-micro-f1", "chemprot", chemprot.read_chemprot, CHEMPROT, ("gu-6",), "registration", punkt=True,
            natural=read_abstracts),
    Dataset("chemprot-blurb", "ChemProt, BLURB's own files", "relations", "five types, or false", "relation-micro-f1",
            "chemprot-blurb", chemprot.read_chemprot_table, by_split("re/chemprot-blurb"), access="registration"),
    Dataset("chemprot-blue", "ChemProt, BLUE's form", "relations", "five types, or false", "relation-micro-f1",
            "chemprot", chemprot.read_chemprot_blue, CHEMPROT, ("wada-7", "naseem-7"), "registration", punkt=True,
            natural=read_abstracts),
    Dataset("chemprot-lim", "ChemProt, Lim and Kang's form", "relations", "five types, or false", "relation-micro-f1",
            "chemprot-recursive", chemprot.read_chemprot_lim,
            {split: ("re/chemprot-recursive/chemprot-data_SPINN.zip",) for split in SPLITS}, ("lee-5",),
            "registration", members=chemprot.LIM_MEMBERS),
    Dataset("chemprot-bioelectra", "ChemProt, Bio-ELECTRA's form", "relations", "five types, or false",
            "relation-micro-f1", "chemprot-bioelectra", chemprot.read_chemprot_bioelectra,
            by_split("re/chemprot-bioelectra"), ("ozyurt-6",), "registration"),
    Dataset("chemprot-scibert", "ChemProt, SciBERT's form", "relations", "13 types, no negatives", "relation-micro-f1",
            "chemprot-scibert", chemprot.read_chemprot_scibert, by_split("re/chemprot-scibert", ".txt"),
            access="registration", negative=None),
    Dataset("ddi", "DDI 2013", "relations", "four types of drug interaction, or none", "relation-micro-f1", "ddi",
            relations.read_ddi, DDI, ("gu-6", "wada-7", "naseem-7"), negative="DDI-false",
            natural=relations.read_ddi_sentences),
    Dataset("ddi-blurb", "DDI 2013, BLURB's own files", "relations", "four types, or none", "relation-micro-f1", "ddi",
            relations.read_ddi_table, by_split("re/ddi/blurb"), negative="DDI-false"),
    Dataset("gad", "GAD, BLURB's division", "relations", "whether gene and disease are associated", "binary-f1", "gad",
            relations.read_gad, by_split("re/gad/blurb"), ("gu-6",)),
    Dataset("gad-biobert", "GAD, BioBERT's ten folds", "relations", "whether gene and disease are associated",
            "binary-f1", "gad", relations.read_gad_archive,
            {split: ("re/gad/gad-biobert-10fold.tar.gz",) for split in TRAIN_TEST}, ("lee-5", "naseem-7"),
            members={split: f"GAD/{{fold}}/{split}.tsv" for split in TRAIN_TEST}, folds=10),
    Dataset("gad-bioelectra", "GAD, Bio-ELECTRA's division", "relations", "whether gene and disease are associated",
            "binary-f1", "gad", relations.read_gad, by_split("re/gad/bioelectra"), ("ozyurt-6",)),
    Dataset("euadr", "EU-ADR, BioBERT's ten folds", "relations", "whether gene and disease are associated",
            "binary-f1", "euadr", relations.read_gad, by_split("re/euadr/{fold}", splits=TRAIN_TEST),
            ("lee-5", "naseem-7"), folds=10),
    Dataset("i2b2-2010-relations", "i2b2/VA 2010, relations", "relations", "eight types, or false",
            "relation-micro-f1", "i2b2-2010", i2b2.read_relations, I2B2_FILES, ("wada-7", "naseem-7"), "credentialed"),
    # Similarity and inference
    Dataset("biosses", "BIOSSES", "similarity", "0 to 4", "pearson", "biosses", pairs.read_biosses,
            by_split("sts/biosses/blurb"), ("gu-6", "wada-7", "naseem-7")),
    Dataset("medsts", "MedSTS", "similarity", "0 to 5", "pearson", "medsts", pairs.read_medsts, by_split("sts/medsts"),
            ("wada-7", "naseem-7"), "credentialed"),
    Dataset("mednli", "MedNLI", "inference", "entailment, contradiction or neutral", "accuracy", "mednli",
            pairs.read_mednli, named("nli/mednli/mli_{}_v1.jsonl", *SPLITS), ("wada-7", "naseem-7"), "credentialed"),
    # Documents
    Dataset("hoc", "Hallmarks of Cancer, BLURB's division", "documents", "ten hallmarks, any number",
            "multilabel-micro-f1", "hoc", classification.read_hoc, HOC, ("gu-6",)),
    Dataset("hoc-blue", "Hallmarks of Cancer, documents with a hallmark", "documents", "ten hallmarks, at least one",
            "example-f1", "hoc", classification.read_hoc_labelled_only, HOC, ("wada-7", "naseem-7")),
    Dataset("docclsjp", "DocClsJp", "documents", "22 categories of disease", "accuracy", "docclsjp",
            classification.read_docclsjp, dict.fromkeys(TRAIN_TEST, ("doccls/docclsjp/docclsjp.csv",)), ("wada-6",),
            "credentialed", folds=5, divide=classification.take_fold, language="ja"),
    *(Dataset(f"jmed-{key}", f"JMED-LLM, {title}", "documents", labels, "accuracy", "jmed-llm",
              classification.read_jmed, dict.fromkeys(TRAIN_TEST, (f"doccls/jmed-llm/all/{key.upper()}.csv",)),
              folds=5, divide=classification.take_fold, asked=True, language="ja")
      for key, title, labels in (("crade", "case reports", "how likely a drug's harm"),
                                 ("rrtnm", "radiology reports", "stages of a tumour"),
                                 ("smdis", "messages", "whether one of eight ills is meant"))),
    # Answers in one word
    Dataset("pubmedqa", "PubMedQA", "answers", "yes, no or maybe", "accuracy", "pubmedqa", pairs.read_pubmedqa,
            by_split("qa/pubmedqa/blurb", ".jsonl"), ("gu-6",)),
    Dataset("bioasq-7b-yesno", "BioASQ 7b, yes/no", "answers", "yes or no", "accuracy", "bioasq-7b-yesno-blurb",
            pairs.read_yesno, by_split("qa/bioasq-7b-yesno-blurb"), ("gu-6",), "registration"),
    Dataset("bioasq-8b-yesno", "BioASQ 8b, yes/no", "answers", "yes or no", "answer-class-f1", "bioasq-8b-yesno",
            pairs.read_yesno_ideal, by_split("qa/bioasq-8b-yesno", splits=TRAIN_TEST), ("ozyurt-3",), "registration"),
    # Answers in the text
    *(Dataset(f"bioasq-{year}b-factoid", f"BioASQ {year}b, factoid", "questions", "a span", "bioasq-factoid",
              "bioasq-factoid-biobert", questions.read_bioasq_squad, factoid(year), ("lee-6", "naseem-7"),
              "registration") for year in (4, 5, 6)),
    Dataset("bioasq-7b-factoid", "BioASQ 7b, factoid", "questions", "a span", "bioasq-factoid", "bioasq-7b-biobert",
            questions.read_bioasq_squad,
            {"train": ("qa/bioasq-7b-biobert/BioASQ-train-factoid-7b.json",),
             "test": ("qa/bioasq-7b-biobert/BioASQ-test-factoid-7b.json", "qa/bioasq-7b-biobert/7B_golden.json")},
            access="registration"),
    Dataset("bioasq-8b-factoid", "BioASQ 8b, factoid, Bio-ELECTRA's form", "questions", "a span", "squad",
            "bioasq-8b-factoid", questions.read_squad,
            named("qa/bioasq-8b-factoid/{}.json", "train", "dev", splits=TRAIN_TEST), ("ozyurt-2",), "registration"),
    Dataset("squad", "SQuAD v1.1", "questions", "a span", "squad", "squad", questions.read_squad,
            {"train": ("qa/squad-v1.1/train-v1.1.json",),
             "dev": ("qa/squad-v1.1-dev-derived/dev-v1.1.derived.json",)}),
    # Answers to rank
    Dataset("bioasq-reranker", "BioASQ answer candidates", "ranking", "whether a sentence answers", "ranking-mrr",
            "bioasq-reranker", pairs.read_candidates, by_split("qa/bioasq-reranker", splits=TRAIN_TEST), ("ozyurt-5",),
            "registration"),
]  # fmt: skip
DATASETS = {row.key: row for row in ROWS}


def lookup(key: str) -> Dataset:
    """The registry row of a dataset; StudyError with the nearest names when there is none."""
    if key not in DATASETS:
        raise unknown("dataset", key, DATASETS)
    return DATASETS[key]


def split_files(key: str, split: str, scale: str, fold: int = 1) -> list[Path]:
    """The raw files or folders of a split; StudyError when it has no such split, or one of them is not there."""
    dataset = lookup(key)
    if split not in dataset.files:
        raise StudyError(f"{dataset.title} has no {split} split: it has {', '.join(dataset.files)}")
    found = []
    for name in dataset.files[split]:
        path = paths.data(scale) / name.format(fold=fold)
        try:
            found.append(path if path.is_dir() else records.find_file(path))
        except StudyError:
            raise StudyError(f"{dataset.title}: no {show_path(path)}; {how_to_get(key)}") from None
    return found


def how_to_get(key: str) -> str:
    return f"./run_all.sh data {lookup(key).group} fetches it or says how to get it"


def missing(key: str, scale: str) -> dict[str, str]:
    """The splits of a dataset that cannot be read, and why."""
    reasons = {}
    for split in lookup(key).files:
        try:
            for fold in range(1, lookup(key).folds + 1):
                split_files(key, split, scale, fold)
            if lookup(key).punkt:
                relations.load_punkt()
        except StudyError as error:
            reasons[split] = str(error)
    return reasons


def splits(key: str, scale: str) -> list[str]:
    """The splits of a dataset that can be read."""
    return [split for split in lookup(key).files if split not in missing(key, scale)]


def why_missing(key: str, scale: str, protocol: str = "") -> str:
    """Why some split of a dataset cannot be read, or an empty string when all can.

    With a protocol, also of the set on which it fine-tunes before this one.
    """
    reasons = missing(key, scale)
    if not reasons:
        first = protocol and params.load_finetuning(protocol, key, lookup(key).family, scale).first_on
        reason = why_missing(first, scale) if first else ""
        return f"{protocol} fine-tunes on {first} first: {reason}" if reason else ""
    some = f"the {' and '.join(reasons)} split{'s are' if len(reasons) > 1 else ' is'} not at hand: "
    return (some if len(reasons) < len(lookup(key).files) else "") + next(iter(reasons.values()))


def why_not(key: str, scale: str, protocol: str = "") -> str:
    """Why a dataset cannot be run at a scale, or an empty string when it can; with a protocol, under that."""
    budget = params.load("scales", scale)
    # Made-up data are written by the study itself, so they need not be there yet.
    reason = "" if budget.made_up else why_missing(key, scale, protocol)
    if not reason and budget.datasets is not None and key not in budget.datasets:
        return f"outside the budget of scale '{scale}'"
    return reason


def load(key: str, split: str, scale: str, fold: int = 1) -> list[Instance]:
    """The instances of one split, of one fold where a set has several.

    StudyError for an unknown set, split or fold, and for files that are not there, empty or damaged.
    """
    dataset = lookup(key)
    if not 1 <= fold <= dataset.folds:
        raise StudyError(f"{dataset.title} has no fold {fold}: it has {dataset.folds}")
    files = split_files(key, split, scale, fold)
    inside = [dataset.members[split].format(fold=fold)] if dataset.members else []
    found = list(dataset.read(*files, *inside))
    if dataset.divide:
        found = dataset.divide(found, split, fold)
    if not found:
        raise StudyError(f"{show_path(files[0])}: no instances of the {split} split; {records.AGAIN}")
    return found


def load_settings(key: str, setting: str, scale: str) -> params.Finetuning:
    """How a dataset is fine-tuned on under a protocol at a scale."""
    return params.load_finetuning(setting, key, lookup(key).family, scale)


def parts(key: str) -> list[tuple[str, int]]:
    """Every split of a dataset, with every fold."""
    row = lookup(key)
    return [(split, fold) for split in row.files for fold in range(1, row.folds + 1)]


def fingerprints(key: str, scale: str) -> dict[str, str]:
    """Of what a score on a dataset depends: its files, unread; its row, and the version of its reader."""
    row = lookup(key)
    found = {
        f"{split} {fold}": provenance.fingerprint(
            [provenance.file_fingerprint(file) for file in list_files(split_files(key, split, scale, fold))]
        )
        for split, fold in parts(key)
    }
    return found | {"reader": fingerprint_reader(row)}


def fingerprint_reader(row: Dataset) -> str:
    """Of how a dataset is read: its row, and the version of its reader."""
    options = getattr(row.read, "keywords", {})
    facts = [row.files, row.members, row.metric, row.negative, row.overlapping, row.asked, row.language, options]
    return provenance.fingerprint(facts, row.version)


def files(scale: str) -> list[Path]:
    """Every raw file of the registry that is at hand, for fingerprints."""
    named = {
        name.format(fold=fold)
        for row in ROWS
        for names in row.files.values()
        for name in names
        for fold in range(1, row.folds + 1)
    }
    folder = paths.data(scale)
    return list_files(folder / f"{name}{ending}" for name in sorted(named) for ending in ("", ".gz"))


def list_files(found: Iterable[Path]) -> list[Path]:
    """The files among paths and in the folders among them, each once, in order."""
    return sorted({f for path in found for f in (path.rglob("*") if path.is_dir() else [path]) if f.is_file()})
