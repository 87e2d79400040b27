/** Events about drift, told on the object that drifted. Pure. */
import { managers } from '../../constructs/api/constants.ts';
import type { DriftEvent } from '../apply/drift/mend.ts';
import type { EventInput } from '../kube/events.ts';
import { refOf } from '../kube/types.ts';
import { fightsText } from './status.ts';

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
