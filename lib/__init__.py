"""The study's library: packages of the science, and the study itself; see docs/tree.md."""
