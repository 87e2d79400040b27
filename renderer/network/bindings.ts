/** What only the cluster knows about an object of an installation, marked for the executor. */
import { foreignAnnotations, labels } from '../../constructs/api/constants.ts';
import type { PayloadObject } from '../../constructs/api/payload.ts';
import { toPointer } from '../../constructs/lib/json.ts';
import type { ReleaseObject } from '../domain.ts';
import { annotationsOf, type ChartObject, objectId } from './object.ts';
import { isClusterScoped } from './table.ts';

const ownerPointer = '/metadata/ownerReferences';
const uidLabelPointer = toPointer(['metadata', 'labels', labels.installationUID]);

/** Claims, and what Helm is told to keep, outlive the installation: labelled, never owned, never pruned. */
const isKept = (object: ChartObject): boolean =>
  object.kind === 'PersistentVolumeClaim' || annotationsOf(object)[foreignAnnotations.helmResourcePolicy] === 'keep';

/** The object with its marks: a label everywhere, an owner where a namespaced owner is allowed and may take it along. */
export function toReleaseObject(object: ChartObject, origin: string): ReleaseObject {
  const keep = isKept(object);
  const bind: NonNullable<PayloadObject['bind']> = [{ at: uidLabelPointer, what: 'uidLabels' }];
  if (!keep && !isClusterScoped(object)) bind.push({ at: ownerPointer, what: 'owner' });
  return { object: object.body, origin: `${origin} (${objectId(object)})`, keep, bind };
}
