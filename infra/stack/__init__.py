"""The CDK application, its stack, publishing and gradual rollout."""
