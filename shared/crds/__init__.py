"""The CustomResourceDefinitions: manifests, schema, CEL rules and compatibility."""
