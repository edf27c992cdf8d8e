"""The study: settings and keys, the graph and its jobs, the record and the report."""
