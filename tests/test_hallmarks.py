"""Tests of the hallmarks of cancer: lists of abstracts, and the real files against BLURB's format.

test_formats.py tests that the corpus is read as written, and the messages about damaged files.
"""

from collections import Counter, defaultdict

from golden import FORMATS, HOC_EXAMPLES, read_hoc, write_files

from lib.benchmarks import hallmarks
from lib.benchmarks.instances import Labelled
from lib.reading import find_file, read_columns


def test_abstracts_are_in_the_order_of_the_list_and_blue_has_only_labelled_ones(tmp_path):
    folder = write_files(tmp_path, FORMATS["hoc"].files)
    abstracts = read_hoc(folder, hallmarks.read_hoc_labelled_only, left_out=(left_out := Counter()))
    assert abstracts == HOC_EXAMPLES[1:] and left_out == {"abstracts without a hallmark": 1}
    assert read_hoc(write_files(folder, {"list.tsv": "1.txt,\n2.txt\n"})) == HOC_EXAMPLES[::-1]


def read_table_of_sentences(path) -> list[Labelled]:
    """Read the labelled abstracts from BLURB's format of the hallmarks: one sentence per row, with ten flags."""
    sentences, labels = defaultdict(list), defaultdict(set)
    for _, (flags, sentence, index) in read_columns(path, 3, "labels sentence index"):
        pmid = index.split("_")[0]
        sentences[pmid].append(sentence)
        labels[pmid] |= {number for number, flag in enumerate(flags.split(",")) if flag.endswith("_1")}
    names = list(hallmarks.HALLMARKS.values())
    return [Labelled(id, tuple(sentences[id]), tuple(names[i] for i in sorted(labels[id]))) for id in sentences]


def test_the_real_hallmarks_equal_blurbs_files(real_data):
    folder = real_data / "doccls/hoc"
    for split in ("train", "dev", "test"):
        documents = hallmarks.read_hoc(folder / "hoc-corpus.tar.gz", folder / f"splits/{split}_pmid.tsv")
        is_equal = documents == read_table_of_sentences(find_file(folder / f"blurb/{split}.tsv"))
        assert is_equal, split
