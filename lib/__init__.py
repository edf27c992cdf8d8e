"""The library: the science packages, the study (lib/study) and what runs it (lib/running); see docs/tree.md."""

import sys
import warnings

from lib.errors import show_uncaught

sys.excepthook = show_uncaught
warnings.filterwarnings("ignore", message="IProgress not found")  # progress is shown without widgets
# jsonschema, which nbformat loads, would build a grammar for IRIs on import: two seconds in every process, for a check
# that no notebook needs. It skips the check if this package cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)
