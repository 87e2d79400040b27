import { readSigners } from '../../executor/source/signers.ts';
import { readTrustSecret } from '../../executor/source/trust.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print, table } from '../output.ts';

export interface Options extends CommonOptions {
  readonly namespace: string;
}

/** `keelson keys list`: the keys that a cluster trusts, and the releases whose payload each of them signed. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const { namespace } = options;
  const { trust, releases } = await withClient(invocation, options, async (client) => {
    const read = await readTrustSecret(client, namespace, invocation.signal);
    const signers = await readSigners(client, namespace, invocation.signal);
    const problems = [
      ...(read.type === 'read' ? read.problems : [read.problem]),
      ...('problem' in signers ? [signers.problem] : []),
    ];
    if (read.type !== 'read' || 'problem' in signers || problems.length > 0) throw new FailedWithProblems(problems);
    return { trust: read.trust, releases: signers.releases };
  });
  const signedBy = (keyId: string): string[] => releases.filter((r) => r.keyId === keyId).map((r) => r.release);
  const others = new Set(releases.flatMap(({ keyId }) => (keyId === undefined || trust.has(keyId) ? [] : [keyId])));
  const keys = [
    ...[...trust.keys()].map((keyId) => ({ keyId, trusted: true, releases: signedBy(keyId) })),
    ...[...others].map((keyId) => ({ keyId, trusted: false, releases: signedBy(keyId) })),
  ].sort((a, b) => (a.keyId < b.keyId ? -1 : 1));
  print(invocation, options.output, keys, () =>
    table(
      ['KEY', 'TRUSTED', 'SIGNED'],
      keys.map((key) => [key.keyId, key.trusted ? 'yes' : 'no', key.releases.join(', ') || '-']),
    ),
  );
  return exitCodes.done;
}
