/** Events about drift, told on the object that drifted, and about objects that came and went, told on their Release. Pure. */
import { managers } from '../../constructs/api/constants.ts';
import type { DriftEvent } from '../apply/drift/mend.ts';
import type { Moved } from '../apply/engine.ts';
import type { EventInput } from '../kube/events.ts';
import { type KubeObject, refOf } from '../kube/types.ts';
import { describeId, fightsText } from './status.ts';

/** What people are told of drift. */
export function driftNews(event: DriftEvent): EventInput {
  const { uid } = event.object.metadata;
  const regarding = { ...refOf(event.object), ...(uid === undefined ? {} : { uid }) };
  if (event.type === 'fight')
    return { regarding, type: 'Warning', reason: 'DriftFight', action: 'Wait', note: fightsText([event.fight]) };
  const note = event.created
    ? `it was deleted and is created again; take it out of Git instead`
    : `${event.fields.join(', ')}: ${event.managers.join(' and ')} changed it, ${managers.objects} set it back; change it in Git instead`;
  return { regarding, type: 'Normal', reason: 'DriftRepaired', action: 'Repair', note };
}

/** How many objects an Event names. */
const mostNamed = 5;

/** What people are told of objects that one pass adopted or pruned: one Event, however many there are. */
export function movedNews(release: KubeObject, { how, ids }: Moved): EventInput {
  const { uid } = release.metadata;
  const named = [...ids].sort().slice(0, mostNamed).map(describeId).join(', ');
  const more = ids.length > mostNamed ? ` and ${ids.length - mostNamed} more` : '';
  const count = ids.length === 1 ? '1 object was' : `${ids.length} objects were`;
  return {
    regarding: { ...refOf(release), ...(uid === undefined ? {} : { uid }) },
    type: 'Normal',
    ...(how === 'adopted' ? { reason: 'Adopted', action: 'Adopt' } : { reason: 'Pruned', action: 'Prune' }),
    note: `${count} ${how === 'adopted' ? 'adopted' : 'removed'}: ${named}${more}`,
  };
}
