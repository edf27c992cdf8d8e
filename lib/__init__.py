"""The study's library: packages of the science, and the study itself; see docs/tree.md."""

import sys
import warnings

from lib.errors import show_uncaught

sys.excepthook = show_uncaught
warnings.filterwarnings("ignore", message="IProgress not found")  # we show progress without widgets
# jsonschema, which nbformat loads, would build a grammar for IRIs on import: two seconds of every process, for a check
# that no notebook needs. It does without where the package cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)
