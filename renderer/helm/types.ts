import type { Digest } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { TarFile } from '../../constructs/lib/tar.ts';

/** One rendering: a chart's files, the values beside its defaults, and what Helm calls the release. */
export interface RenderInput {
  readonly chart: {
    readonly name: string;
    readonly digest: Digest;
    readonly files: readonly TarFile[];
    /** Files left out before Helm sees the chart, relative to it; those that exist are recorded. */
    readonly without: readonly string[];
  };
  readonly values: JsonObject;
  readonly releaseName: string;
  readonly namespace: string;
  readonly kubernetesVersion: string;
}

export interface RenderOutput {
  /** In Helm's order, hooks included. */
  readonly objects: readonly JsonObject[];
  /** Files of `without` that the chart had. */
  readonly stripped: readonly string[];
}
