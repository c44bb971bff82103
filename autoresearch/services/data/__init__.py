"""Stores of experience: rows in, batches of arrays out, saved without pickle, sent each once."""


def __getattr__(name: str) -> object:
    """Load a store when it is asked for: ``data.ReplayBuffer``."""
    if not name.endswith(("Buffer", "DataStore", "DataStoreBase")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from autoresearch import services  # which loads this module too

    store: object = getattr(services, name)
    return store
