"""mpsbar doctor: inspects torch in one Python from a child process, judges and describes it."""
