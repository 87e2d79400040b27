import { type Problem, ProblemError } from '../../constructs/lib/problems.ts';
import { changeTrust } from '../../executor/courier/trust-change.ts';
import { readSigners } from '../../executor/source/signers.ts';
import { FailedWithProblems } from '../failure.ts';
import type { CommonOptions, ExitCode, Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { tellTrust } from './keys-trust.ts';

export interface Options extends CommonOptions {
  readonly namespace: string;
  readonly inUse?: boolean;
}

/**
 * `keelson keys untrust KEYID`: accepts nothing more that this key signed. What was accepted stays enforced; while a
 * payload that it signed is still what a Release asks for, that has to be said.
 */
export async function run(invocation: Invocation, options: Options, keyId: string): Promise<ExitCode> {
  const { namespace } = options;
  const { signal } = invocation;
  const outcome = await withClient(invocation, options, async (client) => {
    if (options.inUse !== true) {
      const signers = await readSigners(client, namespace, signal);
      if ('problem' in signers) throw new FailedWithProblems([signers.problem]);
      const using = signers.releases.filter((release) => release.keyId === keyId);
      if (using.length > 0) throw new ProblemError(using.map(({ release }) => inUse(namespace, release, keyId)));
    }
    return changeTrust({ client, namespace, signal, add: new Map(), remove: new Set([keyId]) });
  });
  return tellTrust(invocation, options, outcome);
}

const inUse = (namespace: string, release: string, keyId: string): Problem => ({
  reason: 'KeyInUse',
  message: `key ${keyId} signed the payload that it asks for`,
  object: `Release ${namespace}/${release}`,
  remedy: 'publish with another trusted key and deliver that first; or say --in-use, if nobody must use this key again',
});
