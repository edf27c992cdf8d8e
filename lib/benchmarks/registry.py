"""The registry of benchmark datasets, one row each. Where papers build a dataset differently, each version is here."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from lib.benchmarks import (
    chemprot,
    conll,
    ddi,
    hallmarks,
    i2b2,
    pico,
    pubtator,
    questions,
    shareclef,
    tabular,
)
from lib.benchmarks.datasets import SPLITS, TRAIN_TEST, Dataset, by_split, list_data_files, take_fold
from lib.errors import unknown


def named(form: str, *names: str, splits: Iterable[str] = SPLITS) -> dict[str, tuple[str, ...]]:
    """Return one file per split, replacing `{}` in `form` by that split's name."""
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
    """Return BioBERT's files of one edition: training questions, and five test batches with their answers."""
    tests = (
        *(FACTOID.format("test", year, f"-{batch}") for batch in range(1, 6)),
        *(f"qa/bioasq-factoid-biobert/{year}B{batch}_golden.json" for batch in range(1, 6)),
    )
    return {"train": (FACTOID.format("train", year, ""),), "test": tests}


ROWS = [
    # Named entities. The datasets of Crichton et al. 2017 are in their IOB form.
    Dataset("bc5cdr-chem", "BC5CDR, chemical", "tagging", "chemicals", "entity-f1", conll.read_conll,
            by_split("ner/bc5cdr-chem"), "bc5cdr-chem", ("lee-4", "gu-6", "wada-7", "naseem-7")),
    Dataset("bc5cdr-disease", "BC5CDR, disease", "tagging", "diseases", "entity-f1", conll.read_conll,
            by_split("ner/bc5cdr-disease"), "bc5cdr-disease", ("lee-4", "gu-6", "wada-7", "naseem-7")),
    Dataset("ncbi-disease", "NCBI-disease", "tagging", "diseases", "entity-f1", conll.read_conll,
            by_split("ner/ncbi-disease"), "ncbi-disease", ("lee-4", "gu-6", "naseem-7", "ozyurt-4")),
    Dataset("bc2gm", "BC2GM", "tagging", "genes", "entity-f1", conll.read_conll, by_split("ner/bc2gm"), "bc2gm",
            ("lee-4", "gu-6", "naseem-7", "ozyurt-4")),
    Dataset("jnlpba", "JNLPBA, five types as one", "tagging", "proteins, DNA, RNA, cell types and lines", "entity-f1",
            conll.read_merged, by_split("ner/jnlpba"), "jnlpba", ("gu-6",)),
    Dataset("jnlpba-biobert", "JNLPBA, BioBERT's version", "tagging", "proteins, DNA and RNA as one", "entity-f1",
            conll.read_conll, by_split("ner/jnlpba-biobert"), "jnlpba-biobert", ("lee-4", "naseem-7")),
    Dataset("linnaeus", "LINNAEUS", "tagging", "species", "entity-f1", conll.read_conll,
            by_split("ner/linnaeus"), "linnaeus", ("lee-4", "naseem-7", "ozyurt-4")),
    Dataset("s800", "Species-800", "tagging", "species", "entity-f1", conll.read_conll, by_split("ner/s800"), "s800",
            ("lee-4", "naseem-7")),
    Dataset("bc4chemd", "BC4CHEMD", "tagging", "chemicals", "entity-f1", conll.read_conll,
            by_split("ner/bc4chemd"), "bc4chemd", ("lee-4", "ozyurt-4")),
    Dataset("bc5cdr-chem-pubtator", "BC5CDR, chemical, from PubTator", "tagging", "chemicals", "entity-f1",
            partial(pubtator.read_sentences, kind="Chemical"), named(*PUBTATOR), "bc5cdr-pubtator"),
    Dataset("bc5cdr-disease-pubtator", "BC5CDR, disease, from PubTator", "tagging", "diseases", "entity-f1",
            partial(pubtator.read_sentences, kind="Disease"), named(*PUBTATOR), "bc5cdr-pubtator"),
    Dataset("ncbi-disease-pubtator", "NCBI-disease, from PubTator", "tagging", "diseases", "entity-f1",
            partial(pubtator.read_sentences, kind="Disease"),
            named("ner/ncbi-disease-pubtator/NCBI{}set_corpus.txt", "train", "develop", "test"),
            "ncbi-disease-pubtator"),
    Dataset("i2b2-2010", "i2b2/VA 2010, concepts", "tagging", "problems, tests and treatments", "entity-f1",
            i2b2.read_concepts, I2B2_FILES, "i2b2-2010", ("lee-4",), "credentialed", version=2),
    Dataset("share-clef-2013", "ShARe/CLEF 2013, task 1", "tagging", "disorders, also in parts", "strict-span-f1",
            shareclef.read_disorders, shareclef.FILES, "share-clef", ("wada-7", "naseem-7"), "credentialed", version=3),
    # PICO elements
    Dataset("ebm-pico", "EBM-NLP, original", "pico", "participants, interventions and outcomes, overlapping",
            "pico-macro-f1", pico.read_elements, dict.fromkeys(SPLITS, (PICO,)), "ebm-nlp-original", ("gu-6",),
            members={split: split for split in SPLITS}, overlapping=True),
    Dataset("ebm-pico-blurb", "EBM-NLP, BLURB's files", "pico", "the same, one a word", "pico-macro-f1",
            conll.read_pico, by_split("ner/ebm-nlp-blurb"), "ebm-nlp-blurb"),
    Dataset("ebm-pico-scibert", "EBM-NLP, SciBERT's form", "pico", "the same, one a word", "pico-macro-f1",
            conll.read_pico, by_split("ner/ebm-nlp", ".txt"), "ebm-nlp"),
    # Relations
    Dataset("chemprot", "ChemProt, BLURB's form", "relations", "five types, or false for every other pair",
            "relation-micro-f1", chemprot.read_chemprot, CHEMPROT, "chemprot", ("gu-6",), "registration", punkt=True,
            natural=chemprot.read_chemprot_abstracts),
    Dataset("chemprot-blurb", "ChemProt, BLURB's own files", "relations", "five types, or false", "relation-micro-f1",
            tabular.read_chemprot_table, by_split("re/chemprot-blurb"), "chemprot-blurb", access="registration"),
    Dataset("chemprot-blue", "ChemProt, BLUE's form", "relations", "five types, or false", "relation-micro-f1",
            chemprot.read_chemprot_blue, CHEMPROT, "chemprot", ("wada-7", "naseem-7"), "registration", punkt=True,
            natural=chemprot.read_chemprot_abstracts),
    Dataset("chemprot-lim", "ChemProt, Lim and Kang's form", "relations", "five types, or false", "relation-micro-f1",
            tabular.read_chemprot_lim,
            dict.fromkeys(SPLITS, ("re/chemprot-recursive/chemprot-data_SPINN.zip",)),
            "chemprot-recursive", ("lee-5",), "registration", members=tabular.LIM_MEMBERS),
    Dataset("chemprot-bioelectra", "ChemProt, Bio-ELECTRA's form", "relations", "five types, or false",
            "relation-micro-f1", tabular.read_chemprot_bioelectra,
            by_split("re/chemprot-bioelectra"), "chemprot-bioelectra", ("ozyurt-6",), "registration"),
    Dataset("chemprot-scibert", "ChemProt, SciBERT's form", "relations", "13 types, no negatives", "relation-micro-f1",
            chemprot.read_chemprot_scibert, by_split("re/chemprot-scibert", ".txt"), "chemprot-scibert",
            access="registration", negative=None),
    Dataset("ddi", "DDI 2013", "relations", "four types of drug interaction, or none", "relation-micro-f1",
            ddi.read_ddi, DDI, "ddi", ("gu-6", "wada-7", "naseem-7"), negative="DDI-false",
            natural=ddi.read_ddi_sentences, version=2),
    Dataset("ddi-blurb", "DDI 2013, BLURB's own files", "relations", "four types, or none", "relation-micro-f1",
            tabular.read_ddi_table, by_split("re/ddi/blurb"), "ddi", negative="DDI-false"),
    Dataset("gad", "GAD, BLURB's division", "relations", "whether gene and disease are associated", "binary-f1",
            tabular.read_gad, by_split("re/gad/blurb"), "gad", ("gu-6",)),
    Dataset("gad-biobert", "GAD, BioBERT's ten folds", "relations", "whether gene and disease are associated",
            "binary-f1", tabular.read_gad,
            dict.fromkeys(TRAIN_TEST, ("re/gad/gad-biobert-10fold.tar.gz",)), "gad", ("lee-5", "naseem-7"),
            members={split: f"GAD/{{fold}}/{split}.tsv" for split in TRAIN_TEST}, folds=10),
    Dataset("gad-bioelectra", "GAD, Bio-ELECTRA's division", "relations", "whether gene and disease are associated",
            "binary-f1", tabular.read_gad, by_split("re/gad/bioelectra"), "gad", ("ozyurt-6",)),
    Dataset("euadr", "EU-ADR, BioBERT's ten folds", "relations", "whether gene and disease are associated",
            "binary-f1", tabular.read_gad, by_split("re/euadr/{fold}", splits=TRAIN_TEST), "euadr",
            ("lee-5", "naseem-7"), folds=10),
    Dataset("i2b2-2010-relations", "i2b2/VA 2010, relations", "relations", "eight types, or false",
            "relation-micro-f1", i2b2.read_relations, I2B2_FILES, "i2b2-2010", ("wada-7", "naseem-7"), "credentialed",
            version=2),
    # Similarity and inference
    Dataset("biosses", "BIOSSES", "similarity", "0 to 4", "pearson", tabular.read_biosses,
            by_split("sts/biosses/blurb"), "biosses", ("gu-6", "wada-7", "naseem-7")),
    Dataset("medsts", "MedSTS", "similarity", "0 to 5", "pearson", tabular.read_medsts, by_split("sts/medsts"),
            "medsts", ("wada-7", "naseem-7"), "credentialed"),
    Dataset("mednli", "MedNLI", "inference", "entailment, contradiction or neutral", "accuracy",
            tabular.read_mednli, named("nli/mednli/mli_{}_v1.jsonl", *SPLITS), "mednli", ("wada-7", "naseem-7"),
            "credentialed"),
    # Documents
    Dataset("hoc", "Hallmarks of Cancer, BLURB's division", "documents", "ten hallmarks, any number",
            "multilabel-micro-f1", hallmarks.read_hoc, HOC, "hoc", ("gu-6",)),
    Dataset("hoc-blue", "Hallmarks of Cancer, documents with a hallmark", "documents", "ten hallmarks, at least one",
            "example-f1", hallmarks.read_hoc_labelled_only, HOC, "hoc", ("wada-7", "naseem-7")),
    Dataset("docclsjp", "DocClsJp", "documents", "22 categories of disease", "accuracy",
            tabular.read_docclsjp, dict.fromkeys(TRAIN_TEST, ("doccls/docclsjp/docclsjp.csv",)),
            "docclsjp", ("wada-6",), "credentialed", folds=5, divide=take_fold, language="ja", version=2),
    *(Dataset(f"jmed-{key}", f"JMED-LLM, {title}", "documents", labels, "accuracy",
              tabular.read_jmed, dict.fromkeys(TRAIN_TEST, (f"doccls/jmed-llm/all/{key.upper()}.csv",)),
              "jmed-llm", folds=5, divide=take_fold, question_first=True, language="ja", version=3)
      for key, title, labels in (("crade", "case reports", "how likely a drug's harm"),
                                 ("rrtnm", "radiology reports", "stages of a tumour"),
                                 ("smdis", "messages", "whether one of eight ills is meant"))),
    # Answers in one word
    Dataset("pubmedqa", "PubMedQA", "answers", "yes, no or maybe", "accuracy", tabular.read_pubmedqa,
            by_split("qa/pubmedqa/blurb", ".jsonl"), "pubmedqa", ("gu-6",)),
    Dataset("bioasq-7b-yesno", "BioASQ 7b, yes/no", "answers", "yes or no", "accuracy",
            tabular.read_yesno, by_split("qa/bioasq-7b-yesno-blurb"), "bioasq-7b-yesno-blurb", ("gu-6",),
            "registration", version=2),
    Dataset("bioasq-8b-yesno", "BioASQ 8b, yes/no", "answers", "yes or no", "answer-class-f1",
            tabular.read_yesno_ideal, by_split("qa/bioasq-8b-yesno", splits=TRAIN_TEST), "bioasq-8b-yesno",
            ("ozyurt-3",), "registration"),
    # Answers in the text
    *(Dataset(f"bioasq-{year}b-factoid", f"BioASQ {year}b, factoid", "questions", "a span", "bioasq-factoid",
              questions.read_bioasq_squad, factoid(year), "bioasq-factoid-biobert", ("lee-6", "naseem-7"),
              "registration") for year in (4, 5, 6)),
    Dataset("bioasq-7b-factoid", "BioASQ 7b, factoid", "questions", "a span", "bioasq-factoid",
            questions.read_bioasq_squad,
            {"train": ("qa/bioasq-7b-biobert/BioASQ-train-factoid-7b.json",),
             "test": ("qa/bioasq-7b-biobert/BioASQ-test-factoid-7b.json", "qa/bioasq-7b-biobert/7B_golden.json")},
            "bioasq-7b-biobert", access="registration"),
    Dataset("bioasq-8b-factoid", "BioASQ 8b, factoid and list, Bio-ELECTRA's form", "questions", "a span", "squad",
            questions.read_squad,
            named("qa/bioasq-8b-factoid/{}.json", "train", "dev", splits=TRAIN_TEST), "bioasq-8b-factoid",
            ("ozyurt-2",), "registration"),
    Dataset("squad", "SQuAD v1.1", "questions", "a span", "squad", questions.read_squad,
            {"train": ("qa/squad-v1.1/train-v1.1.json",),
             "dev": ("qa/squad-v1.1-dev-derived/dev-v1.1.derived.json",)}, "squad"),
    # Answers to rank
    Dataset("bioasq-reranker", "BioASQ answer candidates", "ranking", "whether a sentence answers", "ranking-mrr",
            tabular.read_candidates, by_split("qa/bioasq-reranker", splits=TRAIN_TEST), "bioasq-reranker",
            ("ozyurt-5",), "registration", version=3),
]  # fmt: skip
DATASETS = {dataset.key: dataset for dataset in ROWS}


def lookup(key: str) -> Dataset:
    """Return a registered dataset. Raises StudyError with the nearest names if there is none."""
    if key not in DATASETS:
        raise unknown("dataset", key, DATASETS)
    return DATASETS[key]


def files(folder: Path) -> list[Path]:
    """List every raw file of the registry that exists below a folder, for fingerprints."""
    file_names = {
        name.format(fold=fold) for dataset in ROWS for split, fold in dataset.parts for name in dataset.files[split]
    }
    return list_data_files(folder / f"{name}{ending}" for name in sorted(file_names) for ending in ("", ".gz"))
