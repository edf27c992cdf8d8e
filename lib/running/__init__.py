"""The study run: the command line, the graph of jobs, the record and the report."""
