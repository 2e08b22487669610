"""The watch function: looks for new pending pods every few seconds, or when kube-scheduler's log reports them."""
