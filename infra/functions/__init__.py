"""The Lambda functions, their code bundle, and the installer's custom resources."""
