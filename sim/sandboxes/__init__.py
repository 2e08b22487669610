"""Lambda's other half: functions as processes of this machine, and what wakes them, in real time.

The processes run AWS's own `awslambdaric`, which fetches work from a Runtime API on loopback as it does in the cloud.
"""
