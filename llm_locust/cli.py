"""The `llm-locust` command: demo, init, options, probe, calibrate, mock, report, compare.

Load tests themselves are started with `locust -f FILE`; this command holds what stands around them.
Each subcommand imports its room only when it is asked for.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from importlib import metadata, resources
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    if not arguments:
        parser.print_help()
        return 0
    # `probe`, `mock`, `report`, `compare` and `calibrate` have parsers of their own: hand them the rest as it stands.
    if arguments[0] == "probe":
        from llm_locust.load.probe import probe_main

        return probe_main(arguments[1:])
    if arguments[0] == "mock":
        from llm_locust.mock import main as mock_main

        return mock_main(arguments[1:])
    if arguments[0] == "report":
        from llm_locust.analysis.commands import report_main

        return report_main(arguments[1:])
    if arguments[0] == "compare":
        from llm_locust.analysis.commands import compare_main

        return compare_main(arguments[1:])
    if arguments[0] == "calibrate":
        from llm_locust.calibrate.command import calibrate_main

        return calibrate_main(arguments[1:])
    options = parser.parse_args(arguments)
    if options.command == "options":
        print_options()
        return 0
    if options.command == "init":
        return copy_locustfiles(Path(options.directory), overwrite=options.force)
    from llm_locust.demo import run_demo

    return run_demo(quick=options.quick)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="llm-locust",
        description="Truthful streaming load tests of LLM servers with Locust.",
        epilog="A load test:  locust -f locustfiles/llm.py --host http://SERVER:30000 --llm-model M -u 8 --headless",
    )
    parser.add_argument("--version", action="version", version=metadata.version("llm-locust"))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    init = commands.add_parser("init", help="copy the ready-made locustfiles into a folder of yours")
    init.add_argument("directory", nargs="?", default="locustfiles", help="the folder (default: locustfiles)")
    init.add_argument("--force", action="store_true", help="overwrite files that are there already")
    commands.add_parser("options", help="tell every --llm option of a load test, with its default")
    commands.add_parser("probe", help="ask a server one short question and tell what it can do", add_help=False)
    commands.add_parser("calibrate", help="tell what one worker of this machine carries", add_help=False)
    commands.add_parser("mock", help="run the embedded LLM server: an engine model, faults, scripts", add_help=False)
    commands.add_parser("report", help="build a run's report.html again; charts, workbook, tables", add_help=False)
    commands.add_parser("compare", help="put the stages of runs side by side", add_help=False)
    demo = commands.add_parser("demo", help="a sweep over a master and two workers against the embedded server")
    demo.add_argument("--quick", action="store_true", help="a third of the length, for a first look")
    return parser


def print_options() -> None:
    """Print the options that the suite adds to `locust -f FILE`.

    `locust --help` cannot: Locust prints it before it reads a locustfile (2.47).
    """
    from locust.argument_parser import LocustArgumentParser

    from llm_locust.plugin.options import register

    usage = "locust -f FILE --host URL [-u USERS] [-t TIME] [--headless] [--llm-...]"
    quiet = {"add_help": False, "add_env_var_help": False, "add_config_file_help": False}
    parser = LocustArgumentParser(prog="locust", usage=usage, **quiet)
    register(parser)
    parser.print_help()


def locustfiles_root() -> Path:
    """Return the folder of the ready-made locustfiles: beside an editable checkout, inside a wheel."""
    package = Path(str(resources.files("llm_locust")))
    inside = package / "locustfiles"
    return inside if inside.is_dir() else package.parent / "locustfiles"


def copy_locustfiles(directory: Path, *, overwrite: bool) -> int:
    """Copy the locustfiles to `directory`; refuse to touch files that are there unless told to."""
    files = sorted(locustfiles_root().glob("*.py"))
    taken = [directory / f.name for f in files if (directory / f.name).exists()]
    if taken and not overwrite:
        names = ", ".join(str(path) for path in taken)
        print(f"llm-locust init: already there: {names}. Give another folder, or --force.", file=sys.stderr)
        return 1
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for source in files:
            shutil.copyfile(source, directory / source.name)
            print(directory / source.name)
    except OSError as error:
        print(f"llm-locust init: {directory}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"Next: locust -f {directory / 'llm.py'} --host http://SERVER:PORT --llm-model MODEL -u 8 --headless")
    return 0


if __name__ == "__main__":
    sys.exit(main())
