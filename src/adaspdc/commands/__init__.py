"""The sub-commands of ``adaspdc``, one module each, imported by `adaspdc.cli` on use."""
