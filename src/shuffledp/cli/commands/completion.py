from __future__ import annotations

import click

from shuffledp.cli.options import command

SHELLS = ("bash", "zsh", "fish")

EXAMPLE = """
$ shuffledp completion bash > shuffledp-completion.sh
"""


@command(section="Help", example=EXAMPLE)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the tab completion script of a shell.

    \b
    For every new shell, put the line into its start-up file:
      ~/.bashrc                   eval "$(shuffledp completion bash)"
      ~/.zshrc                    eval "$(shuffledp completion zsh)"
      ~/.config/fish/config.fish  shuffledp completion fish | source
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "shuffledp", "_SHUFFLEDP_COMPLETE").source())
