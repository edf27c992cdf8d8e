"""The study: settings and keys, the graph and its jobs, the record and the report."""


def open_study(scale: str = "smoke"):
    """The study at a scale (lib.study.study.Study); StudyError with the nearest names for an unknown one."""
    from lib.study.study import Study  # here, as what only hands a job on imports this package too

    return Study(scale)
