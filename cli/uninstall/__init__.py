"""`joiner uninstall`: the steps before `cdk destroy`."""
