import { manifestDigest, type PayloadContent, type PayloadObject } from '../../constructs/api/payload.ts';

/** The index entry of a ConfigMap in namespace demo, of which nothing special is asked. */
export const plainEntry = (
  name: string,
  place: Pick<PayloadObject, 'file' | 'sha256'> & { readonly dir: string },
): PayloadObject => ({
  file: place.file,
  yaml: `${place.dir}/configmap_demo_${name}.yaml`,
  sha256: place.sha256,
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace: 'demo',
  name,
  keep: false,
  conflict: 'fail',
  recreate: false,
  createOnly: false,
  absent: false,
});

/** The content of a payload of plain manifests with one phase and no gates. */
export function onePhase(phase: string, objects: PayloadObject[], more: Partial<PayloadContent> = {}): PayloadContent {
  const phases = [{ name: phase, dir: `10-${phase}`, gates: [], objects }];
  return {
    cluster: 'local',
    release: { name: 'manifests-demo', domain: 'manifests' },
    manifestDigest: manifestDigest(phases),
    installations: [],
    requires: [],
    spans: [],
    phases,
    ...more,
  };
}
