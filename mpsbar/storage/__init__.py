"""What we keep: every file mpsbar makes outside of a run directory."""
