"""What `make demo` does: how many epochs are worth their time? Data that comes with scikit-learn, no download."""
