"""Which join order, which states: until a cost-based planner chooses, plain defaults with their reasons."""
