"""What the scripts share: where to connect, and scenarios that report an error instead of ending the script."""

import os

HOST, PORT = os.environ["CLIENT_HOST"], int(os.environ["CLIENT_PORT"])
USER, PASSWORD, DATABASE = (os.environ["CLIENT_" + name] for name in ("USER", "PASSWORD", "DATABASE"))


def show(value):
    return "NULL" if value is None else str(value)


def code(error):
    """The server's error number, also of an error that another one wraps."""
    for e in (error, getattr(error, "orig", None), error.__cause__):
        if e is not None and e.args and isinstance(e.args[0], int):
            return e.args[0]
    return f"{type(error).__name__}:{error}".replace("\n", " ").replace(" ", "_")


def scenarios(functions, rollback):
    for function in functions:
        try:
            function(function.__name__)
        except Exception as e:
            print(f"{function.__name__} error={code(e)}")
            rollback()
