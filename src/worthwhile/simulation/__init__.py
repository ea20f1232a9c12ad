"""The simulator: worlds that answer (`environments/`), one run (`loop`), many of them (`simulator`), what came out."""
