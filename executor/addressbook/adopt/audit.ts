/** What an adoption writes down of itself, for whoever asks later. */
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { AdoptStepName } from './plan.ts';

export type AuditEntry =
  /** A run begins, with what is to become of what. */
  | { readonly event: 'plan'; readonly digest: string; readonly adoption: JsonObject }
  /** About to be sent. A run that ends here may have written it, or not. */
  | {
      readonly event: 'writing';
      readonly step: AdoptStepName;
      readonly object: string;
      readonly before: JsonObject | null;
    }
  | {
      readonly event: 'written';
      readonly step: AdoptStepName;
      readonly object: string;
      readonly uid: string;
      readonly resourceVersion: string;
      readonly after: JsonObject;
    }
  /** Another run, or another hand, had written it. */
  | { readonly event: 'found'; readonly step: AdoptStepName; readonly object: string; readonly uid: string }
  /** What the step is for was seen. */
  | { readonly event: 'settled'; readonly step: AdoptStepName }
  | { readonly event: 'done' }
  | { readonly event: 'failed'; readonly message: string };

/** Keeps an entry before it returns. @throws when it can not: nothing is written then that would not be on record. */
export type Audit = (entry: AuditEntry) => Promise<void>;
