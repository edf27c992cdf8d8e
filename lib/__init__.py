"""The study's library. Flat: a module a noun, see the tree in README.md."""

import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # we show progress without widgets
