/** Variables that change how git behaves, and that a person or a CI system sets on purpose. */
export const allowedVariables = [
  'GIT_ASKPASS',
  'GIT_AUTHOR_DATE',
  'GIT_COMMITTER_DATE',
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_NOSYSTEM',
  'GIT_SSH',
  'GIT_SSH_COMMAND',
  'GIT_SSL_CAINFO',
  'GIT_TERMINAL_PROMPT',
  'SSH_ASKPASS',
] as const;

/** Programs that git would start and wait for. */
const refused = new Set(['EDITOR', 'PAGER', 'PREFIX', 'VISUAL']);

/**
 * The environment for git: the caller's, without anything that would redirect git to another repository or make it
 * wait for a person. Messages come in English, so that they can be told apart.
 */
export function gitEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const allowed = new Set<string>(allowedVariables);
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || refused.has(name)) continue;
    if (name.startsWith('GIT_') && !allowed.has(name)) continue;
    out[name] = value;
  }
  return { ...out, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0' };
}
