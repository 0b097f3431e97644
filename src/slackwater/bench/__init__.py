"""Benchmarks that anyone can rerun: `slackwater bench …`."""
