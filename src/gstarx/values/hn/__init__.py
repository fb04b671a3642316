"""The Hamiache-Navarro value: closed form, the paper's iteration, and a consistent estimator."""
