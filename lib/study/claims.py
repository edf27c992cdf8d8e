"""The papers' claims: how each is tested, and its verdict. Their wording is in published/claims.csv."""

import html
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from IPython.display import HTML, Markdown

from lib import statistics
from lib.errors import unknown
from lib.study import claim_tests, pairs, params, results, show, tables
from lib.study.claim_tests import by_table, faster, follows
from lib.study.pairs import Pairs, all_of, paired, paired_runs
from lib.study.trends import Trend, trend
from lib.study.verdicts import About, Test

if TYPE_CHECKING:
    from lib.study import Study

VERSION = 11  # raised by hand when a test or its result changes
COLUMNS = ["claim", "paper", "about", "statement", "test", "paper_effect", "paper_effect_here", "effect", "ci_low",
           "ci_high", "n", "p", "part", "unit", "n_sets", "n_pretrainings", "n_seeds", "below_baseline", "substituted",
           "verdict", "note", "not_tested"]  # fmt: skip
DIGITS = dict.fromkeys(["paper_effect", "paper_effect_here", "effect", "ci_low", "ci_high"], 2) | {"p": 4}
VERDICTS = {  # as columns of a table
    "holds": "hold", "fails": "fail", "points that way": "point that way",
    "points the other way": "point the other way", "undecided": "undecided", "n/a": "not measured here (n/a)",
}  # fmt: skip
KINDS: dict[About, str] = {
    "scores": "claims about scores", "text": "claims about text, vocabularies and cost",
    "arithmetic": "checks of arithmetic",
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A row of published/claims.csv with its test, and the parts of the claim that are not tested (`not_tested`)."""

    key: str
    test: Test
    not_tested: str = ""


# Models and protocols that several claims compare.
BASE, SMALL = ("bert-general-pubmed", "lee"), ("bio-electra-plus", "ozyurt")
MEDBERT, JAPANESE = "BERT (prop sP + W + BC: AmpVocab)", "BERT (prop jpCR + jpW: AmpVocab) SimPT+AmpV"
OUBIOBERT, SIMPT = "BERT (prop fP+oP) SimPT+AmpV", "BERT (prop fP+oP) SimPT only"
ON_EVERY = "that it holds on every dataset"
OF_BOTH = "BioBERT (+PubMed+PMC), the model behind the abstract's numbers"
ELECTRAS = ("Bio-ELECTRA++", "Bio-ELECTRA", "ELECTRA Small++")
WEIGHTED = tuple(f"{name} (weighted)" for name in ELECTRAS)

# The datasets of PubMedBERT, BioALBERT and Bio-ELECTRA; OF_PUBMED: BioALBERT's without clinical notes, as printed.
BLURB = ["bc5cdr-chem", "bc5cdr-disease", "ncbi-disease", "bc2gm", "jnlpba", "ebm-pico", "chemprot", "ddi", "gad",
         "biosses", "hoc", "pubmedqa", "bioasq-7b-yesno"]  # fmt: skip
TWENTY = ["share-clef-2013", "bc5cdr-disease", "bc5cdr-chem", "jnlpba-biobert", "linnaeus", "ncbi-disease", "s800",
          "bc2gm", "ddi", "chemprot-blue", "i2b2-2010-relations", "euadr", "gad-biobert", "biosses", "medsts", "mednli",
          "hoc-blue", "bioasq-4b-factoid", "bioasq-5b-factoid", "bioasq-6b-factoid"]  # fmt: skip
NINE = ["bc4chemd", "bc2gm", "ncbi-disease", "linnaeus", "bioasq-8b-factoid", "bioasq-8b-yesno", "bioasq-reranker",
        "chemprot-bioelectra", "gad-bioelectra"]  # fmt: skip
OF_PUBMED = ["BC5CDR (Disease)", "BC5CDR (Chemical)", "JNLPBA", "Linnaeus", "NCBI (Disease)", "S800", "BC2GM", "DDI",
             "ChemProt", "Euadr", "GAD", "BIOSSES", "HoC", "BioASQ 4b", "BioASQ 5b", "BioASQ 6b"]  # fmt: skip

# In the order of published/claims.csv. Margins are in points and were set before any result that they judge; the margin
# of a time ratio is a fifth of the ratio.
CLAIMS = (
    Claim("gu-vocab-whole", by_table("gu-1", claim_tests.decide_whole_terms)),
    Claim("gu-shorter-input", by_table("gu-8", claim_tests.decide_shorter_inputs)),
    Claim("gu-scratch-beats-continual",
          paired("gu-9", ("PubMed, PubMed vocab", "Wiki+Books then PubMed, Wiki+Books vocab"))),
    Claim("gu-half-compute",
          paired("gu-9", ("PubMed (half time), PubMed vocab", "Wiki+Books then PubMed, Wiki+Books vocab"),
                 relation="as good as", margin=1)),
    Claim("gu-vocab-matters",
          paired("gu-7", ("PubMed vocab, word-piece masking", "Wiki+Books vocab, word-piece masking"),
                 ("PubMed vocab, whole-word masking", "Wiki+Books vocab, whole-word masking")),
          "the vocabulary alone, since models of the general one continue BERT and see less of PubMed"),
    Claim("gu-whole-word",
          paired("gu-7", ("Wiki+Books vocab, whole-word masking", "Wiki+Books vocab, word-piece masking"),
                 ("PubMed vocab, whole-word masking", "PubMed vocab, word-piece masking")),
          ON_EVERY),
    Claim("gu-general-first-no-gain",
          paired("gu-9", ("PubMed, PubMed vocab", "Wiki+Books then PubMed, PubMed vocab"),
                 relation="as good as", margin=0.5)),
    Claim("gu-full-text-no-gain",
          all_of(paired("gu-10", ("PubMed", "PubMed+PMC"), relation="as good as", margin=0.5),
                 paired("gu-10", ("PubMed+PMC (longer training)", "PubMed")))),
    Claim("gu-adversarial-no-gain",
          all_of(paired("gu-11", ("PubMedBERT", "PubMedBERT + adversarial")),
                 paired("gu-11", ("PubMedBERT + adversarial", "PubMedBERT"), only=["BIOSSES"]))),
    Claim("gu-linear-head",
          paired("gu-12", ("Linear layer", "Bi-LSTM"), unit="checkpoint", relation="as good as", margin=0.5),
          "the CRF, of which the paper prints no score"),
    Claim("gu-tagging-scheme",
          paired("gu-13", ("BIO", "BIOUL"), ("BIO", "IO"), unit="checkpoint", relation="equals", margin=0.5)),
    Claim("gu-original-text-fails",
          all_of(paired("gu-14", ("entity dummification / [CLS]", "original / [CLS]"),
                        ("entity dummification / MENTION", "original / [CLS]"),
                        ("original / MENTION", "original / [CLS]"), ("entity markers / [CLS]", "original / [CLS]"),
                        ("entity markers / MENTION", "original / [CLS]"),
                        ("entity markers / ENTITY START", "original / [CLS]"), unit="checkpoint",
                        than_at_chance=True),
                 paired("gu-14", ("entity dummification / [CLS]", "entity markers / [CLS]"),
                        ("entity dummification / MENTION", "entity markers / MENTION"), unit="checkpoint",
                        relation="equals", margin=1)),
          "that it is far the worst; that markers are slightly better than dummies, as section 3.3 says"),
    Claim("gu-attention-shattering", by_table("gu-figure-3", claim_tests.decide_shattered, claim_tests.NOT_COMPARED),
          "that the second sentence has the word: the caption prints its relation alone"),
    Claim("gu-clinical-notes-no-help",
          paired("gu-6", ("BioBERT cased", "ClinicalBERT cased"), ("BioBERT cased", "BlueBERT cased"),
                 relation="as good as", margin=0.5),
          "notes alone, since the models differ in more"),
    Claim("gu-general-corpus-size",
          paired("gu-6", ("PubMedBERT uncased", "RoBERTa cased"), ("PubMedBERT uncased", "BERT cased")),
          "more general text, where our RoBERTa is pretrained on BERT's"),
    Claim("gu-blurb-arithmetic", follows("gu-pubmedbert", "average")),
    Claim("gu-beats-every-encoder",
          paired("gu-6", *(("PubMedBERT uncased", other)
                           for other in ("BERT uncased", "BERT cased", "RoBERTa cased", "BioBERT cased",
                                         "SciBERT uncased", "SciBERT cased", "ClinicalBERT cased", "BlueBERT cased")),
                 ahead=7)),
    Claim("gu-cased-as-good",
          paired_runs(("pubmedbert-cased", "gu"), ("pubmedbert", "gu"), BLURB, relation="equals", margin=1)),
    Claim("lee-beats-bert-ner", paired("lee-4", ("BioBERT (+PubMed)", "BERT (Wiki+Books)"), metric="F1", ahead=9),
          OF_BOTH),
    Claim("lee-beats-bert-re", paired("lee-5", ("BioBERT (+PubMed)", "BERT (Wiki+Books)"), metric="F1"), OF_BOTH),
    Claim("lee-beats-bert-qa", paired("lee-6", ("BioBERT (+PubMed)", "BERT (Wiki+Books)"), metric="MRR"),
          f"{OF_BOTH}; that the margin is wide"),
    Claim("lee-corpus-size", trend(Trend("lee-figure-2")), "that it levels off"),
    Claim("lee-steps", trend(Trend("lee-figure-3")), "that it levels off"),
    Claim("lee-small-sets-gain",
          trend(Trend("lee-figure-4", only=("BioBERT (+PubMed+PMC)",), falls=True),
                Trend("lee-figure-4-one-set", falls=True)),
          "that the gains are considerable, which is all that the paper says"),
    Claim("lee-bio-beats-bioes",
          paired_runs(BASE, ("bert-general-pubmed", "lee-bioes"),
                      ["ncbi-disease", "bc5cdr-disease", "bc5cdr-chem", "bc2gm"], unit="checkpoint"),
          ON_EVERY),
    # Datasets with the original entity words, because the paper's own ChemProt files have placeholders.
    Claim("lee-anonymise-beats-tags",
          paired_runs(BASE, ("bert-general-pubmed", "lee-markers"), ["chemprot", "ddi"], unit="checkpoint"),
          ON_EVERY),
    Claim("lee-squad-first",
          paired_runs(BASE, ("bert-general-pubmed", "lee-no-squad"),
                      ["bioasq-4b-factoid", "bioasq-5b-factoid", "bioasq-6b-factoid", "bioasq-7b-factoid"],
                      unit="checkpoint"),
          ON_EVERY),
    Claim("lee-averages", follows("lee-biobert", "F1", "average", "difference")),
    Claim("lee-order-of-corpora",
          paired("lee-4", ("BioBERT (+PubMed)", "BERT (Wiki+Books)"), ("BioBERT (+PMC)", "BioBERT (+PubMed)"),
                 ("BioBERT (+PubMed+PMC)", "BioBERT (+PMC)"), metric="F1"),
          "that the state of the art comes before BERT"),
    Claim("wada-amplified-terms",
          Test(claim_tests.decide_whole_words, vocabularies=claim_tests.WHOLE, by_interval=True, about="text")),
    Claim("wada-core-share", by_table("wada-figure-3", claim_tests.decide_core_share, "instances not counted yet")),
    Claim("wada-simpt-beats-continual",
          all_of(paired("wada-6", (JAPANESE, "BERT (jpW/ jpCR: jpWVocab)"), relation="as good as", margin=1),
                 paired("wada-7", (MEDBERT, "BERT (W + BC/ sP: BaseVocab)"), relation="as good as", margin=1)),
          "simultaneous pretraining alone, since the vocabulary is amplified too; that the Japanese model beats all "
          "other BERTs, as the abstract says"),
    Claim("wada-small-only-worst",
          all_of(paired("wada-7", (MEDBERT, "BERT (sP: BaseVocab)")),
                 paired("wada-7", ("BERT (W + BC/ sP: BaseVocab)", "BERT (sP: BaseVocab)")))),
    Claim("wada-amplified-helps",
          all_of(paired("wada-6", (JAPANESE, "BERT (prop jpCR + jpW) SimPT only")),
                 paired("wada-8", (OUBIOBERT, SIMPT), relation="as good as", margin=0.5)),
          "that it helps hardly in English: only that it does not hurt"),
    Claim("wada-transformers-beat-baselines",
          all_of(*(paired("wada-6", (encoder, "TF-IDF + SVM"), (encoder, "CNN"), (encoder, "biLSTM with SA"))
                   for encoder in (JAPANESE, "BERT (jpW: jpWVocab)", "UTH-BERT (EMR: EMRVocab)", "BERT (jpCR: CRVocab)",
                                   "BERT (jpW/ jpCR: jpWVocab)", "BERT (prop jpCR + jpW) SimPT only")))),
    Claim("wada-totals", follows("wada-oubiobert", "average", "difference")),
    Claim("wada-beats-biobert",
          paired("wada-8", (OUBIOBERT, "BioBERT (W+BC/P: BaseVocab)"), (OUBIOBERT, "BlueBERT (W+BC/P: BaseVocab)"),
                 (OUBIOBERT, "BlueBERT (W+BC/P/M: BaseVocab)"))),
    Claim("wada-simpt-alone",
          all_of(paired("wada-8", (SIMPT, "BERT (prop fP+oP) neither")),
                 paired("wada-8", (SIMPT, "BERT (prop fP+oP) neither"),
                        only=["MedSTS", "ShARe/CLEFE", "i2b2 2010", "MedNLI"])),
          "that clinical sets gain more than the others; the abstract's gain of both methods together; section 6's "
          "gain of the configuration alone"),
    Claim("wada-small-corpus-near",
          all_of(paired("wada-7", (MEDBERT, "BERT (W + BC: BaseVocab)")),
                 paired("wada-7", *((MEDBERT, other)
                                    for other in ("BioBERT (W + BC/ P: BaseVocab)", "SciBERT (Sci: SciVocab)",
                                                  "clinicalBERT (W + BC/ P/ M: BaseVocab)",
                                                  "BlueBERT (W + BC/ P: BaseVocab)",
                                                  "BlueBERT (W + BC/ P/ M: BaseVocab)")),
                        relation="as good as", margin=2))),
    Claim("wada-uth-no-better",
          paired("wada-6", ("UTH-BERT (EMR: EMRVocab)", "BERT (jpW: jpWVocab)"), relation="equals", margin=1)),
    Claim("naseem-beats-albert",
          paired_runs(("bioalbert-base1", "naseem"), ("albert-base", "naseem"), TWENTY, ahead=20),
          "the lenient accuracy of questions, for which their MRR stands"),
    Claim("naseem-size", by_table("parameters", claim_tests.decide_sizes, "parameters not counted yet")),
    Claim("naseem-faster", faster("step-times", ["bioalbert-base1", "bioalbert-large1"], than="bert-general-pubmed")),
    Claim("naseem-mimic-hurts",
          paired("naseem-7", ("Base1", "Base3"), ("Base2", "Base4"), ("Large1", "Large3"), ("Large2", "Large4"),
                 only=OF_PUBMED),
          "notes alone, since three of four pairs differ in steps; clinical sets; it takes models of MIMIC-III, and so "
          "credentials"),
    Claim("naseem-large-best",
          paired("naseem-7", *(("Large1", other) for other in ("Base1", "Base2", "Large2", "Base3", "Base4", "Large3",
                                                               "Large4"))),
          "that it is best on every task, as the text says"),
    Claim("naseem-ner-gain",
          Test(claim_tests.decide_entity_gain, unit="recipe", tables=("protocols",), by_interval=True,
               measured_in="points")),
    Claim("naseem-arithmetic", follows("naseem-bioalbert", "average", "difference", "text")),
    Claim("ozyurt-small-comparable",
          all_of(paired_runs(SMALL, ("bert-general", "ozyurt-bert"),
                             ["bioasq-8b-factoid", "bioasq-8b-yesno", "chemprot-bioelectra", "gad-bioelectra"],
                             relation="as good as", margin=1),
                 paired("ozyurt-5", ("Bio-ELECTRA++", "BERT Base"), relation="as good as", margin=1)),
          "questions and relations by themselves: in print yes/no questions make up for the others; Bio-ELECTRA, of "
          "which the abstract says it too"),
    Claim("ozyurt-second-stage",
          paired_runs(SMALL, ("bio-electra", "ozyurt"), NINE, ahead=8)),
    Claim("ozyurt-steps", trend(Trend("ozyurt-figure-1"))),
    # Above the mean of both: closer to BERT than to its score before tuning.
    Claim("ozyurt-tuning",
          paired("ozyurt-7", ("Bio-ELECTRA++ opt", "Bio-ELECTRA++", "BERT"), metric="F1",
                 only=["BC4CHEMD", "BC2GM", "NCBI disease", "LINNAEUS"]),
          "that it becomes comparable with BERT, as the abstract says, or gains in print on test sets alone: on NCBI "
          "disease and LINNAEUS the tuned scores are of development sets"),
    Claim("ozyurt-inference", faster("inference-times", ["bio-electra"], than="bert-uncased", ratio=8, margin=1.6)),
    Claim("ozyurt-weighted-loss",
          paired("ozyurt-5", *zip(ELECTRAS, WEIGHTED, strict=True), unit="checkpoint", relation="as good as",
                 margin=1)),
    Claim("ozyurt-one-class-runs", Test(claim_tests.decide_one_class, "checkpoint", tables=(claim_tests.ANSWERS,))),
    # At a tenth of the tokens and at all of them.
    Claim("ozyurt-sample-efficiency",
          all_of(*(paired_runs((f"bio-electra{part}", "ozyurt"), (f"bio-electra-masked{part}", "ozyurt"), NINE)
                   for part in ("-steps-10", ""))),
          "the objective alone, since the embeddings of BERT are as wide as its body"),
    Claim("ozyurt-arithmetic", follows("ozyurt-bioelectra", "F1", "two tables")),
    Claim("ozyurt-beats-small", paired_runs(SMALL, ("electra-small-plus", "ozyurt"), NINE, ahead=8)),
    Claim("ozyurt-bert-entities", paired("ozyurt-4", *(("BERT", other) for other in ELECTRAS), metric="F1")),
    Claim("ozyurt-ranking", paired("ozyurt-5", *((one, "BERT Base") for one in ELECTRAS + WEIGHTED)),
          "that Bio-ELECTRA++ is the best of them"),
    Claim("ozyurt-sbert-worst",
          paired("ozyurt-5", *((one, other) for one in (*ELECTRAS, *WEIGHTED, "BERT Base")
                               for other in ("SBERT bert-base-nli-mean-tokens", "SBERT domain-adaptation")))),
    Claim("ozyurt-tuned-chemprot", paired("ozyurt-7", ("Bio-ELECTRA++ opt", "BERT"), metric="F1", only=["CHEMPROT"])),
)  # fmt: skip
NOT_TESTED = {claim.key: claim.not_tested for claim in CLAIMS}


def find_claim(key: str) -> Claim:
    """Return the claim with this key. Raises StudyError with the nearest names if there is none."""
    for claim in CLAIMS:
        if claim.key == key:
            return claim
    raise unknown("claim", key, NOT_TESTED)


def list_claim_runs(study: "Study") -> list[params.RunKey]:
    """List the runs that claims compare directly, not through a table, and that can be made."""
    cells = [cell for claim in CLAIMS for cell in list_direct_cells(claim, study) if not cell["why_not"]]
    return list(dict.fromkeys((cell["model"], cell["dataset"], cell["protocol"]) for cell in cells))


def list_direct_cells(claim: Claim, study: "Study") -> list[dict]:
    """List the cells of the runs that a claim compares directly, not through a table."""
    cells = []
    for part in claim.test.parts:
        if isinstance(part, Pairs) and part.runs:
            cells += pairs.list_compared_cells(part, study).to_dict("records")
    return cells


def judge_claims(study: "Study") -> pd.DataFrame:
    """Return every claim with its test, effects, interval and verdict: one row each, with COLUMNS.

    `p` is corrected for all claims that an interval decides, measured or not. A verdict that does not survive the
    correction is weakened.
    """
    rows = [judge_alone(claim, study) for claim in CLAIMS]
    family = [row for row, claim in zip(rows, CLAIMS, strict=True) if claim.test.by_interval]
    p_values = statistics.correct([1.0 if np.isnan(row["p"]) else row["p"] for row in family])
    for row, p_value in zip(family, p_values, strict=True):
        if not np.isnan(row["p"]):
            row["p"] = p_value
            if row["verdict"] in ("holds", "fails") and p_value >= statistics.SIGNIFICANT:
                row["verdict"] = statistics.weaken(row["verdict"])
                row["note"] = f"not significant after correction for {len(family)} claims; {row['note']}"
    return tabulate_claims(rows)


def judge_one(study: "Study", key: str) -> pd.Series:
    """Return the row of one claim as in `judge_claims`, but with p not corrected.

    Raises StudyError if there is no such claim.
    """
    return tabulate_claims([judge_alone(find_claim(key), study)]).iloc[0]


def show_of(study: "Study", table: str) -> HTML | Markdown:
    """Show the claims tested on a published table or figure, with the paper's effects and ours; folded, the reasons."""
    rows, reasons = [], []
    for claim in CLAIMS:
        if not is_tested_on(claim, table, study):
            continue
        row = judge_one(study, claim.key)
        interval = "" if np.isnan(row["ci_low"]) else f"{row['ci_low']:+.2f} to {row['ci_high']:+.2f}"
        rows.append({"claim": row["statement"], "paper, all its sets": row["paper_effect"],
                     "paper, our sets": row["paper_effect_here"], "ours": row["effect"], "95% interval": interval,
                     "runs": row["n"], "verdict before correction": row["verdict"]})  # fmt: skip
        parts = html.escape(row["note"]).replace("; part", "<br>part")
        not_tested = f"<br>Not tested: {html.escape(claim.not_tested)}." if claim.not_tested else ""
        reasons.append(f"<dt>{html.escape(row['statement'])}</dt><dd>{parts}{not_tested}</dd>")
    if not rows:
        return Markdown("We test no claim on this table.")
    caption = 'Page <a href="01_results_in_brief.ipynb">01</a> corrects verdicts for the number of claims.'
    folded = f"<details><summary>Why, and what was not tested</summary><dl>{''.join(reasons)}</dl></details>"
    return HTML(show.table(rows, caption=caption).data + folded)


def is_tested_on(claim: Claim, table: str, study: "Study") -> bool:
    """Return whether a claim compares cells of a published table, or runs that fill some cells of a table of scores."""
    if claim.test.parts and table in claim.test.tables:
        return True
    if params.load("tables", table).kind != "scores":
        return False
    compared = {tuple(cell[name] for name in tables.RUN) for cell in list_direct_cells(claim, study)}
    return not compared.isdisjoint(study.published(table)[tables.RUN].itertuples(index=False, name=None))


def judge_alone(claim: Claim, study: "Study") -> dict:
    """Return the row of one claim before p is corrected and the verdict limited."""
    test = claim.test
    judgement = test.decide(study)
    if study.budget.made_up:
        judgement = replace(judgement, verdict="n/a", note=results.MADE_UP)
    wording = results.read_claims().set_index("claim").loc[claim.key, ["paper", "statement", "test"]].to_dict()
    test_fields = {"about": test.about, "unit": test.unit, "not_tested": claim.not_tested}
    return {"claim": claim.key} | wording | asdict(judgement) | test_fields


def tabulate_claims(lines: list[dict]) -> pd.DataFrame:
    """Return rows as a table, with numbers rounded and verdicts limited by the number of pretrainings."""
    for line in lines:
        line["verdict"] = statistics.limit(line["verdict"], line["unit"] == "recipe", line["n_pretrainings"])
    return pd.DataFrame(lines, columns=COLUMNS).round(DIGITS)


def read_verdicts(study: "Study") -> pd.DataFrame:
    """Return the judged claims; before notebook 01 has run, all have the verdict n/a."""
    judged = study.find_table("claims")
    return results.read_claims().assign(n=0, verdict="n/a", note="") if judged is None else judged


def describe_verdict(claim: dict) -> str:
    """Phrase a verdict for a sentence, noting if the claim was tested only in part or on few datasets."""
    phrase = {"fails": "does not hold"}.get(claim["verdict"], claim["verdict"])
    if claim["verdict"] in ("holds", "fails") and 0 < claim["n_sets"] < statistics.SETS:
        phrase += " on these sets"
    in_part = NOT_TESTED.get(claim["claim"]) and claim["verdict"] in ("holds", "points that way")
    return f"{phrase} as far as tested" if in_part else phrase


def list_measured_recipes(judged: pd.DataFrame) -> pd.DataFrame:
    """Keep the measured claims about pretraining recipes."""
    return judged.reindex(columns=COLUMNS).query("unit == 'recipe' and n_sets > 0")


def list_recipes(judged: pd.DataFrame) -> list[str]:
    """List the results of the measured claims about pretraining recipes, one line each (Markdown)."""
    papers, measured = results.list_papers(), list_measured_recipes(judged)
    return [describe_recipe(claim, papers[claim["paper"]]) for claim in measured.to_dict("records")]


def find_unit(claim: dict) -> str:
    """Return the unit of a judged claim's effects; empty if its note states it."""
    return find_claim(claim["claim"]).test.measured_in


def describe_recipe(claim: dict, paper: str) -> str:
    """Describe the result of one claim in a line (Markdown)."""
    untested = NOT_TESTED[claim["claim"]]
    note = claim["note"]
    if untested:
        note += f"; not tested: {untested}"
    effect = f"{claim['effect']:+.2f} {find_unit(claim)} ({claim['ci_low']:+.2f} to {claim['ci_high']:+.2f})"
    return (
        f"- *{claim['statement']}* ({paper}): **{describe_verdict(claim)}**, {effect}, "
        f"at least {claim['n_pretrainings']} pretrainings a side; the paper's mean difference is "
        f"{claim['paper_effect_here']:+.2f} on these datasets and {claim['paper_effect']:+.2f} on all its datasets. "
        f"Corrected p {claim['p']:.3f}; {note}."
    )


def describe_counts(judged: pd.DataFrame) -> str:
    """Count claims by verdict, in words: 1 holds, 2 point that way, 7 are undecided."""
    counts = judged["verdict"].value_counts()
    texts = []
    for verdict, words in VERDICTS.items():
        count = counts.get(verdict, 0)
        if verdict in ("undecided", "n/a"):
            words = f"{'is' if count == 1 else 'are'} {words}"
        elif count == 1:
            words = verdict
        if count:
            texts.append(f"{count} {words}")
    return ", ".join(texts)


def list_about(judged: pd.DataFrame) -> dict[About, pd.DataFrame]:
    """Group the claims by what they are about, in the order of KINDS."""
    kinds = judged["claim"].map({claim.key: claim.test.about for claim in CLAIMS})
    return {kind: judged[kinds == kind] for kind in KINDS}


def tally(judged: pd.DataFrame) -> pd.DataFrame:
    """Count the claims by verdict: claims about scores per paper and in total, other kinds in total only."""
    rows = []
    for kind, claims in list_about(judged).items():
        by_paper = [(name, claims[claims["paper"] == paper]) for paper, name in results.list_papers().items()]
        for name, subset in [*(by_paper if kind == "scores" else []), ("all", claims)]:
            verdicts = subset["verdict"].tolist()
            counts = {column: verdicts.count(verdict) for verdict, column in VERDICTS.items()}
            rows.append({"what": KINDS[kind], "paper": name, "of": len(verdicts)} | counts)
    return pd.DataFrame(rows)
