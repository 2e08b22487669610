"""`joiner ui`: the interactive page of a fleet, in a browser on this computer."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from cli.terminal.errors import InputError
from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.ui.server.fleet_feed import FleetFeed
    from cli.ui.server.hub_feed import HubFeed
    from cli.ui.server.page_server import PageServer

DESCRIPTION: Final = """Serve an interactive page of the fleet on this computer: a map of nodes and pods, a timeline,
charts, the reason of each decision, and what-if plans. The source is a live cluster (--context), the journal of a
deployment (--journal, or $JOINER_BUCKET_NAME), both, or files (-f). Without a source, it is the cluster of the
current context. The page of a live cluster is updated every 5 seconds. With --hub, the page is a table of many
clusters, read from their buckets every 5 minutes, with the commands to run next for each cluster. The server listens on
127.0.0.1 only, requires the token in the printed address, and changes nothing; Ctrl-C stops it."""
EXAMPLES: Final = """examples:
  joiner ui --journal examples/journal           the example journal, offline
  joiner ui -f examples/cluster --instance-types examples/catalogue.json         example files, offline, with what-if
  joiner ui                                      the cluster of the current context; if $JOINER_BUCKET_NAME is set,
                                                 only the journal in this bucket
  joiner ui --context                            the current context; if $JOINER_BUCKET_NAME is set, with its journal
  joiner ui --context prod --journal s3://joiner-prod-bucket --since 72h
  joiner ui --context prod --port 8080 --open    on port 8080, and open the browser
  joiner ui --hub examples/hub.yaml              many clusters, from their buckets (docs/guide/hub.md)

In a clone of the repository, `make ui` builds the page.
On a remote host: `ssh -t -L 7468:127.0.0.1:7468 HOST joiner ui --port 7468`, then open the printed address locally.

exit codes: 0 stopped by Ctrl-C, 1 the source could not be read, the port is in use, or the page is not built,
2 wrong usage
"""
MAX_PORT: Final = 65535


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.journal.arguments import add_journal_arguments  # noqa: PLC0415 - the list of commands needs none of it
    from cli.planning.arguments import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_journal_arguments(parser)
    parser.add_argument("--hub", metavar="FILE", help="show the clusters of a hub file instead of one cluster")
    parser.add_argument(
        "--port", type=_parse_port, metavar="PORT", help="port to listen on (default: 7468, or a free port)"
    )
    parser.add_argument("--open", action="store_true", dest="opens_browser", help="open the page in your browser")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Read the source and serve its page until Ctrl-C; return 1 if that is not possible."""
    if args.filename and (args.journal or args.context is not None or args.kubeconfig is not None):
        args.usage("-f cannot be combined with --journal, --context or --kubeconfig")
    if args.hub and (args.filename or args.journal or args.context is not None or args.kubeconfig is not None):
        args.usage("--hub cannot be combined with -f, --journal, --context or --kubeconfig")
    try:
        feed, server = _open_hub(args) if args.hub else _open_fleet(args)
    except InputError as error:
        return print_errors("ui", str(error).splitlines())
    return _serve_until_stopped(server, feed, opens_browser=args.opens_browser)


def _open_fleet(args: argparse.Namespace) -> "tuple[FleetFeed, PageServer]":
    from cli.ui.server.fleet_server import FleetServer  # noqa: PLC0415 - --help needs none of it
    from cli.ui.sources import open_feed  # noqa: PLC0415

    feed = open_feed(args)
    return feed, _start_server(args.port, lambda port, token: FleetServer(port, token, feed, "Joiner"))


def _open_hub(args: argparse.Namespace) -> "tuple[HubFeed, PageServer]":
    from datetime import UTC, datetime  # noqa: PLC0415 - --help needs none of it

    from cli.hub.hub_file import read_hub_file  # noqa: PLC0415
    from cli.hub.session import read_hub  # noqa: PLC0415
    from cli.ui.server.hub_feed import HubFeed  # noqa: PLC0415
    from cli.ui.server.hub_server import HubServer  # noqa: PLC0415

    clusters = read_hub_file(args.hub)
    view = read_hub(clusters, args.now or datetime.now(UTC))
    feed = HubFeed(view, lambda: read_hub(clusters, datetime.now(UTC)))
    return feed, _start_server(args.port, lambda port, token: HubServer(port, token, feed, "Joiner: clusters"))


def _start_server(port: int | None, build_server: "Callable[[int, str], PageServer]") -> "PageServer":
    """Return a server that listens on *port*; None: the default port, or a free port if it is in use.

    Raises:
        InputError: *port* is in use, or the page is not built.
    """
    from secrets import token_urlsafe  # noqa: PLC0415

    from cli.ui.server.page_server import DEFAULT_PORT  # noqa: PLC0415

    token = token_urlsafe(24)
    try:
        return build_server(DEFAULT_PORT if port is None else port, token)
    except OSError as error:
        if port is not None:
            raise InputError(
                f"--port {port}: {error.strerror}: choose another port, or omit --port for a free one"
            ) from None
    return build_server(0, token)


def _serve_until_stopped(server: "PageServer", feed: "FleetFeed | HubFeed", *, opens_browser: bool) -> int:
    sys.stdout.write(f"page: {server.url}\nCtrl-C stops the server\n")
    sys.stdout.flush()
    feed.start()
    if opens_browser:
        import webbrowser  # noqa: PLC0415

        webbrowser.open(server.url)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        sys.stdout.write("\nstopped\n")
    finally:
        feed.stop()
        server.server_close()
    return 0


def _parse_port(text: str) -> int:
    """Parse a port; 0 is a free port.

    Raises:
        ArgumentTypeError: *text* is no port.
    """
    if not text.isascii() or not text.isdecimal() or int(text) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port between 0 and {MAX_PORT}")
    return int(text)
