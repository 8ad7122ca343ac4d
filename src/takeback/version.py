"""The one place where the version is written; the build reads it from here."""

VERSION = "0.1.0.dev0"
