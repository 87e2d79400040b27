import type { Command } from 'commander';

interface Entry {
  /** Words before it: `keys init`. */
  readonly path: string;
  readonly commands: readonly string[];
  readonly options: readonly string[];
}

function entries(command: Command, path: readonly string[], inherited: readonly string[]): Entry[] {
  const own = command.options.flatMap((option) =>
    [option.long, option.short].filter((flag) => flag !== undefined && flag !== null),
  );
  const options = [...new Set([...own, ...inherited])].sort();
  const children = command.commands.filter((child) => child.name() !== 'help');
  return [
    { path: path.join(' '), commands: children.map((child) => child.name()).sort(), options },
    ...children.flatMap((child) => entries(child, [...path, child.name()], options)),
  ];
}

function bash(all: readonly Entry[], shell: 'bash' | 'zsh'): string {
  const cases = all.map(
    ({ path, commands, options }) =>
      `    "${path}") COMPREPLY=( $(compgen -W "${[...commands, ...options].join(' ')}" -- "$word") );;`,
  );
  const known = all.map(({ path }) => path).filter((path) => path !== '');
  return [
    ...(shell === 'zsh' ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_keelson() {',
    `  local word="\${COMP_WORDS[COMP_CWORD]}" path="" i next`,
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    `    next="\${path:+$path }\${COMP_WORDS[i]}"`,
    `    case "|${known.join('|')}|" in *"|$next|"*) path="$next";; esac`,
    '  done',
    '  case "$path" in',
    ...cases,
    '  esac',
    '}',
    'complete -o default -F _keelson keelson',
  ].join('\n');
}

function fish(all: readonly Entry[]): string {
  return all
    .flatMap(({ path, commands, options }) => {
      const when = path === '' ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${path.split(' ').at(-1)}`;
      return [
        ...commands.map((name) => `complete -c keelson -n '${when}' -a ${name}`),
        ...options
          .filter((option) => option.startsWith('--'))
          .map((option) => `complete -c keelson -n '${when}' -l ${option.slice(2)}`),
      ];
    })
    .join('\n');
}

/** A completion script for a shell, made from the tree of commands. */
export function completion(shell: string, program: Command): string {
  const all = entries(program, [], []);
  return shell === 'fish' ? fish(all) : bash(all, shell === 'zsh' ? 'zsh' : 'bash');
}
