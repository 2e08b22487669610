"""Rules of the API server: admission, eviction, deletion, selectors, merge patches, custom resources."""
