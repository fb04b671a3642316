"""The paper's tables and figures, and the trainings they stand on."""
