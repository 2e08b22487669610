"""Lambda functions as processes of this computer, and the services that invoke them, in real time.

The processes run AWS's own `awslambdaric`, which fetches invocations from a Runtime API on loopback, as in Lambda.
"""
