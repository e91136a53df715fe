"""The `tfadmit` command for platform teams and data scientists."""
