import { readTrust, type SignatureVerdict } from '../../constructs/api/signature.ts';
import { checkTree } from '../../constructs/api/tree-check.ts';
import { type Problem, sortProblems } from '../../constructs/lib/problems.ts';
import { type AuditedRelease, auditReleases } from '../../executor/source/audit.ts';
import { FailedWithProblems } from '../failure.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print, table } from '../output.ts';
import { readTree, type TreeOptions } from '../trees.ts';
import { readTrustFiles } from '../trust.ts';

export interface Options extends TreeOptions {
  readonly trust?: readonly string[];
  readonly live?: boolean;
}

interface Result {
  readonly tree: string;
  readonly releases: readonly { release: string; digest: string; objects: number; signature: string }[];
  /** With `--live`: what the cluster says. */
  readonly cluster?: readonly AuditedRelease[];
  readonly problems: readonly Problem[];
}

/**
 * `keelson verify`: whether a rendered tree, its payloads, what carries them and their signatures fit one another; with
 * `--live` the cluster too. Everything that does not is told at once.
 */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const keys = await readTrustFiles(invocation, options.trust ?? []);
  const { cluster, tree, name } = await readTree(invocation, options);
  const trust = options.trust === undefined ? undefined : readTrust(Object.fromEntries(keys)).trust;
  const { releases, problems } = await checkTree(tree, cluster.metadata.name, trust);
  const payloads = new Map(releases.map((release) => [release.name, release.payload]));
  const { namespace } = cluster.spec.executor;
  const live =
    options.live === true
      ? await withClient(invocation, options, (client) =>
          auditReleases({ client, namespace, signal: invocation.signal }, payloads),
        )
      : undefined;
  const result: Result = {
    tree: name,
    releases: releases.map((release) => ({
      release: release.name,
      digest: release.payload.index.digest,
      objects: release.payload.objects.size,
      signature: signatureText(release.signature),
    })),
    ...(live === undefined ? {} : { cluster: live.releases }),
    problems: sortProblems([...problems, ...(live?.problems ?? [])]),
  };
  print(invocation, options.output, result, () => describe(result));
  if (result.problems.length > 0) throw new FailedWithProblems(result.problems);
  return exitCodes.done;
}

/** Without keys to trust, a signature is named and not judged. */
function signatureText(verdict: SignatureVerdict): string {
  if (verdict.kind === 'unsigned') return 'unsigned';
  const judged = { valid: 'trusted', invalid: 'broken', unknownKey: 'not trusted' } as const;
  return verdict.kind === 'unknownKey' && verdict.trusted.length === 0
    ? verdict.keyId
    : `${verdict.keyId} ${judged[verdict.kind]}`;
}

function describe({ releases, cluster }: Result): string {
  const rows = releases.map((r) => [r.release, String(r.objects), r.signature, r.digest]);
  const lines = [table(['RELEASE', 'OBJECTS', 'SIGNATURE', 'DIGEST'], rows)];
  if (cluster !== undefined) {
    const found = cluster.map((r) => [r.release, r.wanted ?? '-', r.actual ?? '-', String(r.retained.length)]);
    lines.push('', table(['RELEASE', 'WANTED', 'ENFORCED', 'RETAINED'], found));
  }
  return lines.join('\n');
}
