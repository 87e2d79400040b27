import { reasonMessage } from '../../../constructs/api/reasons.ts';
import type { LedgerAction, LedgerEvent, LedgerPlan } from '../plan.ts';
import type { AnyView } from './views.ts';

/** Plans of the driver. */
export type Plan = LedgerPlan<AnyView>;
export type Action = LedgerAction<AnyView>;
export type Told = LedgerEvent<AnyView>;

type Values = Readonly<Record<string, string | number>>;

const telling =
  (type: Told['type']) =>
  (about: AnyView, why: string, values: Values = {}): Told => ({
    about,
    type,
    reason: why,
    note: reasonMessage(why, values),
  });

export const normal = telling('Normal');
export const warning = telling('Warning');
