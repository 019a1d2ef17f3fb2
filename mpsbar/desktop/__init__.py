"""This desktop: what we ask of it. Imports no other room of mpsbar."""
