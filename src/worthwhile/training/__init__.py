"""Real training as tasks: how many epochs are worth their time? Data that comes with scikit-learn, no download."""
