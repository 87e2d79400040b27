import { ApiObject, type ApiObjectProps, App, Chart } from 'cdk8s';
import { Construct } from 'constructs';
import type { JsonObject } from '../lib/json.ts';
import { type ObjectIdentity, objectId } from '../lib/names.ts';

/** An object with a name of its own choice; cdk8s would otherwise make names from its tree. */
export interface NamedManifest extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: JsonObject & { readonly name: string; readonly namespace?: string };
}

/** The id of an object in a tree is its identity, so two of one identity throw. Slashes part the ids of constructs. */
export const constructId = (identity: ObjectIdentity): string => objectId(identity).replaceAll('/', ':');

/** One object as written: nothing is added to it. */
export class ManifestObject extends Construct {
  readonly apiObject: ApiObject;

  constructor(scope: Construct, manifest: NamedManifest) {
    const { apiVersion, kind, metadata } = manifest;
    super(scope, constructId({ apiVersion, kind, ...metadata }));
    this.apiObject = new ApiObject(this, 'object', manifest as unknown as ApiObjectProps);
  }
}

/** Objects of a tree of constructs, members sorted, in the order of their definition. Nothing is written to disk. */
export function synthesize(build: (scope: Construct) => void): JsonObject[] {
  const chart = new Chart(new App({ outdir: 'unused' }), 'keelson', { disableResourceNameHashes: true });
  build(chart);
  return chart.toJson() as JsonObject[];
}
