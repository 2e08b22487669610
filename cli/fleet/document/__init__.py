"""The structs of the fleet document; docs/reference/fleet-document.md describes them."""
