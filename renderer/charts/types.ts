import type { Digest } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { TarFile } from '../../constructs/lib/tar.ts';
import type { HttpClient } from '../http/types.ts';
import type { RegistryClient } from '../oci/registry.ts';
import type { ChartCache } from './cache.ts';
import type { ChartFeatures } from './features.ts';

/** Where in the inputs something is written; problems about it carry this. */
export type Place = Pick<Problem, 'file' | 'line' | 'column' | 'object' | 'path'>;

/** A value, or every problem that kept it from being one. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** The chart that a specification asks for. */
export interface ChartRequest {
  /** `https://….tgz` or `oci://host/repository[:tag]`. */
  readonly source: string;
  /** `sha256:<hex>` of the archive or of the OCI chart layer; without it nothing is parsed and the problem tells the digest. */
  readonly digest?: string;
  /** Version that the chart's appVersion must equal, one leading `v` apart. */
  readonly version: string;
  /** Version of the API server, for the chart's kubeVersion. */
  readonly kubernetesVersion: string;
  readonly places: {
    readonly source: Place;
    readonly digest: Place;
    readonly version: Place;
    readonly kubernetesVersion: Place;
  };
}

/** Where charts come from. */
export interface ChartSupply {
  readonly http: HttpClient;
  readonly registry: RegistryClient;
  readonly cache: ChartCache;
  /** `spec.allow.chartHosts`; empty refuses every chart. */
  readonly allowedHosts: readonly string[];
}

export interface ChartMetadata {
  readonly name: string;
  readonly version: string;
  readonly appVersion: string;
  readonly kubeVersion?: string;
}

/** A chart that passed every check. File paths are relative to the chart's own folder. */
export interface LoadedChart {
  readonly source: string;
  readonly digest: Digest;
  /** Bytes of the archive. */
  readonly size: number;
  readonly from: 'cache' | 'network';
  readonly metadata: ChartMetadata;
  readonly files: readonly TarFile[];
  readonly values: JsonObject;
  readonly features: ChartFeatures;
  /** What went wrong without consequence, such as a cache that could not be written. */
  readonly notices: readonly string[];
}
