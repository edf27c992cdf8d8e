"""Made-up data in the real formats, so that the whole study runs without any download.

python -m lib.made_up.smoke_data RECEIPT
"""

import random
import sys
from pathlib import Path

from lib import artefacts
from lib.made_up import smoke_corpora, smoke_relations, smoke_tagging, smoke_texts
from lib.made_up.smoke_language import AMBIGUOUS, MEDICAL, NOTICE, Lexicon, make_sentence
from lib.places import show_path
from lib.study import paths, receipts

VERSION = 1  # raised when other files are written


def write(seed: int = 20) -> Path:
    """Write the whole data folder of the smoke scale; the same bytes for the same seed. Returns the folder."""
    rng = random.Random(seed)
    names = Lexicon(seed).names
    folder = paths.data("smoke")
    with artefacts.whole_folder(folder) as new:
        (new / "README.md").write_text(NOTICE)
        test_texts = []
        # Fine-tuning sees a third of the names, the test set mostly others: what pretraining knows must help.
        seen = {kind: rng.sample(all_names, len(all_names) // 3) for kind, all_names in names.items()}
        for key, kind, entity in (("bc5cdr-chem", "drug", "Chemical"), ("ncbi-disease", "disease", "Disease")):
            for split, size, known in (("train", 150, seen), ("dev", 100, names), ("test", 200, names)):
                # The opening makes each sentence unique, so that no pretraining text holds it by chance.
                sentences = [
                    [(word, "") for word in f"In series {split} {number} ,".split()]
                    + make_sentence(rng, MEDICAL + 2 * AMBIGUOUS, known)
                    for number in range(size)
                ]
                smoke_tagging.write_conll(new / "ner" / key / f"{split}.tsv", sentences, kind, entity)
                if split == "test":
                    test_texts += [" ".join(word for word, _ in s) for s in sentences if len(s) > 12]
        smoke_corpora.write(new / "corpora", rng, names, test_texts)
        for sets in (smoke_tagging, smoke_relations, smoke_texts):
            sets.write(new, rng, names)
        artefacts.write_json(
            new / "meta.json",
            {"made up": NOTICE.strip(), "seed": seed, "version": VERSION},
        )
    return folder


if __name__ == "__main__":
    folder = write()
    receipts.write(Path(sys.argv[1]), folder)
    print(f"made-up data written to {show_path(folder)}")
