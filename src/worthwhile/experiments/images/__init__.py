"""The paper's real-world experiment: five image classification tasks, really trained."""
