"""Several accounts behind one endpoint, as an SDK sees AWS: the access key of a request selects the account.

A role of another account is assumed as in AWS: the policies of the caller are evaluated in the account of the caller,
the trust policy in the account of the role, and the session belongs to the account of the role.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic-cross-account.html
"""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from sim.aws_account.account import Account
from sim.aws_account.services.sts import StsApi
from sim.aws_http.protocol import Environ, parse_call
from sim.aws_http.server import LoopbackServer, StartResponse


class Organization:
    """Accounts that can trust each other. A context manager, which also starts the accounts."""

    def __init__(self, accounts: Sequence[Account]) -> None:
        """Serve *accounts*; a key that none of them issued belongs to the deployer of the first account."""
        self._accounts = tuple(accounts)
        self._server = LoopbackServer(self._serve_request)
        for account in self._accounts:
            account.sts_api.find_other_account = self._find_sts_api

    def __enter__(self) -> Self:
        """Start the accounts and the common endpoint."""
        for account in self._accounts:
            account.__enter__()
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the common endpoint, then the accounts."""
        self._server.stop()
        for account in self._accounts:
            account.__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        """The common endpoint; each account also has its own, for its deployer."""
        return self._server.url

    def _serve_request(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        access_key = parse_call(environ).access_key
        owners = [account for account in self._accounts if account.credential_store.find_credentials(access_key)]
        return (owners or self._accounts)[0].serve_request(environ, start_response)

    def _find_sts_api(self, account_id: str) -> StsApi | None:
        return next((account.sts_api for account in self._accounts if account.account_id == account_id), None)
