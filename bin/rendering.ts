import type { Tree } from '../constructs/api/tree.ts';
import { formatProblem, type Problem, ProblemError } from '../constructs/lib/problems.ts';
import type { ParseDocuments } from '../renderer/cache/documents.ts';
import type { HelmCache } from '../renderer/cache/helm.ts';
import type { ClusterFiles } from '../renderer/load/source.ts';
import type { Signer } from '../renderer/payload/sign.ts';
import { type Rendered, renderCluster } from '../renderer/render.ts';
import type { Invocation } from './invocation.ts';
import { domains } from './supply.ts';
import { version } from './version.ts';

export interface RenderOptions {
  readonly source: ClusterFiles;
  /** The folder on disk, for certificates that settings name. */
  readonly folder: string;
  readonly previous?: Tree;
  readonly signer?: Signer;
  readonly specCommit?: string;
  readonly forgetKinds?: boolean;
  readonly parse?: ParseDocuments;
  /** What Helm gave before. Whoever signs renders without it: only digests of the lock stand behind what is signed. */
  readonly helm?: HelmCache;
}

/** Renders with the domains and tools of this program. @throws ProblemError with every problem. */
export async function render(invocation: Invocation, options: RenderOptions): Promise<Rendered> {
  const { source, folder, helm, ...more } = options;
  const outcome = await renderCluster({
    source,
    domains: domains(invocation, folder, { outputs: helm }),
    keelson: version,
    signal: invocation.signal,
    ...more,
  });
  if (outcome.ok) return outcome.rendered;
  throw new ProblemError(outcome.problems);
}

/** Tells warnings; they stop nothing. */
export function tellWarnings(invocation: Invocation, warnings: readonly Problem[]): void {
  for (const warning of warnings) invocation.err(`warning: ${formatProblem(warning)}`);
}
