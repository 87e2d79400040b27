import { addressesGroup } from '../../constructs/api/addresses.ts';
import { refusedInGit } from '../../constructs/api/kinds/index.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { problemAt, type SourceObject } from './source.ts';

/** Claims and addresses live in the cluster, as volumes and their claims do. */
const ledgerCommand =
  'create it with `kubectl apply -f FILE` and your own credentials; for an address that a Service has already use `keelson addresses adopt`';

/**
 * Kinds that are acts of a person, once, and not wishes that hold: committed, a courier would do them again after every
 * clean-up. Each names the command that creates it with the person's own credentials.
 */
const commands: readonly {
  readonly group: string;
  readonly kind: RegExp;
  readonly command: (kind: string) => string;
}[] = [
  ...refusedInGit.map((kind) => ({
    group: kind.slice(0, kind.indexOf('/')),
    kind: new RegExp(`^${kind.slice(kind.indexOf('/') + 1)}$`),
    command: (name: string) =>
      kind.startsWith(`${addressesGroup}/`) ? ledgerCommand : `create it with \`keelson op ${name}\``,
  })),
  { group: 'storage.simplyblock.io', kind: /Ops$/, command: (kind) => `create it with \`keelson op ${kind}\`` },
  {
    group: 'storage.simplyblock.io',
    kind: /^(TestFailover|MemberRemovalApproval|RecoveryRequest)$/,
    command: (kind) => `create it with \`keelson op ${kind}\``,
  },
];

/** The problem that a one-shot kind stands in Git, or undefined. */
export function oneShotProblem(object: SourceObject): Problem | undefined {
  const { apiVersion, kind } = object.identity;
  const found = commands.find((entry) => entry.group === groupOf(apiVersion) && entry.kind.test(kind));
  if (found === undefined) return undefined;
  return problemAt(object, ['kind'], {
    reason: 'OneShotKind',
    message: `${kind} is a single act, not a state to keep; it has no place in Git`,
    remedy: found.command(kind),
  });
}
