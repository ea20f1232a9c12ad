"""The simulator: worlds that answer (`environments/`), one run (`loop`), many (`runs`, `simulator`), what came out."""
