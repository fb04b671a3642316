"""What this package adds to GStarX: a command."""

COMMANDS = {"serve": "gstarx_explorer.serve_command:serve"}
